import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Certificate {
  readonly cert: string
  readonly key: string
}

/**
 * A certificate for localhost and 127.0.0.1 that signs itself, as PEM (RFC 5280 section 4.1).
 *
 * @param from when it begins to be valid, as a UTCTime
 * @param to when it ends
 */
export function selfSigned(namedCurve = 'P-256', from = '200101000000Z', to = '491231235959Z'): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve })
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
  const name = sequence(set(sequence(oid('550403'), tlv(0x0c, Buffer.from('localhost')))))
  const validity = sequence(tlv(0x17, Buffer.from(from)), tlv(0x17, Buffer.from(to)))
  const altNames = sequence(tlv(0x82, Buffer.from('localhost')), tlv(0x87, Buffer.from([127, 0, 0, 1])))
  const extensions = sequence(
    sequence(
      oid('551d13'), tlv(0x01, Buffer.from([0xff])), tlv(0x04, sequence(tlv(0x01, Buffer.from([0xff])))),
    ),
    sequence(oid('551d11'), tlv(0x04, altNames)),
  )
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.from([1])),
    ecdsaWithSha256, name, validity, name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, extensions),
  )
  const signature = sign('sha256', body, privateKey)
  const der = sequence(body, ecdsaWithSha256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])))
  const base64 = der.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

/** A time in days from now as a UTCTime (RFC 5280 section 4.1.2.5.1). */
export function inDays(days: number): string {
  const time = new Date(Date.now() + days * 24 * 60 * 60_000).toISOString()
  return `${time.slice(2, 19).replaceAll(/\D/g, '')}Z`
}

/** A certificate, and two files with certificate and key for a configuration. */
export function certificateFiles(t: Test): Certificate & { certFile: string; keyFile: string } {
  const pair = selfSigned()
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const certFile = join(folder, 'cert.pem')
  const keyFile = join(folder, 'key.pem')
  writeFileSync(certFile, pair.cert)
  writeFileSync(keyFile, pair.key)
  return { ...pair, certFile, keyFile }
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content
  const head = length < 0x80
    ? [tag, length]
    : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts))
}

function set(...parts: Buffer[]): Buffer {
  return tlv(0x31, Buffer.concat(parts))
}

function oid(hex: string): Buffer {
  return tlv(0x06, Buffer.from(hex, 'hex'))
}
