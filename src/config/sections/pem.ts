import { X509Certificate, createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { nonFileKind } from '../../base/files/file-exists.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** The certificates in a PEM text, each as unchanged text. */
export function certificateBlocks(pem: string): readonly string[] {
  return pem.match(CERTIFICATE_BLOCK) ?? []
}

/** Reports a file that cannot be read, contains no certificate, or contains an invalid certificate. */
export function checkCertificates(file: string, path: Path, findings: Findings): void {
  const pem = readPem(file, path, findings)
  if (pem === null) return
  const blocks = certificateBlocks(pem)
  if (blocks.length === 0) findings.error(path, 'the file contains no certificate in PEM format')
  for (const [index, block] of blocks.entries()) {
    const certificate = parseCertificate(block)
    const remark = certificate && validityWarning(certificate, index, Date.now())
    if (certificate === null) findings.error(path, `certificate ${index + 1} of the file cannot be parsed`)
    else if (remark !== null) findings.warn(path, remark)
  }
}

/** Reports a private key that cannot be used, or that does not fit the certificate. Another check reports an invalid certificate. */
export function checkKeyPair(certFile: string, keyFile: string, path: Path, findings: Findings, passphrase: string | null = null): void {
  const pem = readPem(keyFile, path, findings)
  if (pem === null) return
  let key: KeyObject
  try {
    key = createPrivateKey({ key: pem, ...passphrase !== null && { passphrase } })
  } catch {
    // Do not show OpenSSL's reason, because it may quote the file.
    const isEncrypted = pem.includes('ENCRYPTED')
    const message = !isEncrypted
      ? 'the file holds no private key in PEM form'
      : passphrase === null ? 'the private key has a passphrase' : 'the passphrase does not open the private key'
    return findings.error(path, message)
  }
  const cert = readIfPossible(certFile)
  const certificate = cert === null ? null : firstCertificate(cert)
  if (cert === null || certificate === null) return
  if (!certificate.checkPrivateKey(key)) return findings.error(path, 'the private key does not belong to the certificate')
  const refusal = opensslErrorOf(cert, pem, passphrase)
  if (refusal !== null) findings.error(path, `OpenSSL rejects the certificate and its key: ${refusal}`)
}

/** Why OpenSSL refuses this pair, such as `ee key too small` for its security level. A listener would refuse it too. null = accepted. */
function opensslErrorOf(cert: string, key: string, passphrase: string | null): string | null {
  try {
    createSecureContext({ cert, key, ...passphrase !== null && { passphrase } })
    return null
  } catch (error) {
    // Show only the reason, because only the reason is a fixed text.
    const { reason, code } = error as NodeJS.ErrnoException & { readonly reason?: string }
    return reason ?? code ?? 'it gives no reason'
  }
}

function readIfPossible(file: string): string | null {
  if (nonFileKind(file) !== null) return null
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null // `checkCertificates` has reported the problem.
  }
}

/** The first certificate; null = one of the certificates cannot be parsed. */
function firstCertificate(pem: string): X509Certificate | null {
  const certificates = certificateBlocks(pem).map(parseCertificate)
  return certificates.includes(null) ? null : certificates[0] ?? null
}

function parseCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}

function readPem(file: string, path: Path, findings: Findings): string | null {
  const other = nonFileKind(file)
  if (other !== null) {
    findings.error(path, `this is ${other}; name a file, which is read more than once`)
    return null
  }
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'there is no such file' : `the file cannot be read (${code})`
    findings.error(path, `${reason}; names are relative to the directory of the configuration`)
    return null
  }
}

/**
 * A certificate should be renewed this many ms before it expires. If its lifetime is short, the last quarter of its lifetime counts
 * instead.
 */
const RENEWAL_PERIOD = 14 * 24 * 60 * 60_000
const RENEWAL_SHARE = 1 / 4

/** A warning about the validity period of a certificate; null = none. @param index from 0 @param now ms since 1970 */
export function validityWarning(certificate: X509Certificate, index: number, now: number): string | null {
  const remark = validityProblem(certificate, now)
  return remark && `certificate ${index + 1} of the file ${remark}`
}

function validityProblem(certificate: X509Certificate, now: number): string | null {
  const { validFrom, validTo } = certificate
  const [from, to] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
  if (to < now) return `has run out, on ${validTo}`
  if (from > now) return `is not valid before ${validFrom}`
  return to - now < Math.min(RENEWAL_PERIOD, (to - from) * RENEWAL_SHARE) ? `runs out soon, on ${validTo}` : null
}
