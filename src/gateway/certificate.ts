import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { certificateBlocks } from '../config/pem.ts'
import type { ServerConfig } from '../config/types.ts'
import type { Certificate } from './listener.ts'

/** A certificate, and what can be said of it. */
export interface ParsedCertificate extends Certificate {
  /** What `cert` holds: the certificate, and those that lead to its root. */
  readonly chain: readonly X509Certificate[]
}

/**
 * The certificate's files, read and tried.
 *
 * @throws an error of the system, or OpenSSL's
 */
export function readCertificate(tls: ServerConfig['tls']): ParsedCertificate | null {
  if (tls === null) return null
  const [cert, key] = [readFileSync(tls.cert, 'utf8'), readFileSync(tls.key, 'utf8')]
  createSecureContext({ cert, key })
  return { cert, key, chain: certificateBlocks(cert).map(block => new X509Certificate(block)) }
}
