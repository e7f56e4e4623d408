import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { certificateBlocks } from '../../config/sections/pem.ts'
import type { ServerConfig } from '../../config/types.ts'
import type { Certificate } from './listener.ts'

export interface ParsedCertificate extends Certificate {
  /** The certificate, and then the intermediate certificates, in the order of `cert`. */
  readonly chain: readonly X509Certificate[]
}

/** Reads the files, and checks that OpenSSL accepts them. null = no TLS. @throws a system error, or an error of OpenSSL */
export function readCertificate(tls: ServerConfig['tls']): ParsedCertificate | null {
  if (tls === null) return null
  const [cert, key] = [readFileSync(tls.cert, 'utf8'), readFileSync(tls.key, 'utf8')]
  createSecureContext({ cert, key })
  return { cert, key, chain: certificateBlocks(cert).map(block => new X509Certificate(block)) }
}
