import { GatewayError, descriptorShortage } from '../../base/errors.ts'
import { ProxyError } from './tunnel.ts'

/** Codes of undici, and of node's own parser, which reads the responses to WebSocket handshakes. */
const HEADERS_TOO_LARGE = new Set(['UND_ERR_HEADERS_OVERFLOW', 'HPE_HEADER_OVERFLOW'])

/** OpenSSL's codes for an untrusted root. Node's message for them is replaced, because its advice does not apply to the gateway. */
const UNKNOWN_ROOT = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** OpenSSL's codes for alerts of a peer about a certificate (RFC 8446 section 6.2). */
const CERTIFICATE_ALERT = /_ALERT_(?:CERTIFICATE_\w+|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)$/

/** The gateway's error for a connection that failed before a response began. */
export function connectionError(cause: Error & { code?: string }, connected: boolean): GatewayError {
  const shortage = descriptorShortage(cause)
  if (shortage) return shortage
  if (UNKNOWN_ROOT.has(cause.code ?? '')) {
    const message = 'the upstream shows a certificate whose root is not trusted; its ca: can name the root'
    return new GatewayError('upstream_unreachable', message, { cause })
  }
  if (cause instanceof ProxyError) return new GatewayError('upstream_unreachable', 'the upstream cannot be reached through its proxy', { cause })
  if (CERTIFICATE_ALERT.test(cause.code ?? '')) {
    return new GatewayError('upstream_unreachable', "the upstream does not accept the gateway's certificate, or requires one; see tls of the upstream", { cause })
  }
  if (!connected) return new GatewayError('upstream_unreachable', 'the upstream cannot be reached', { cause })
  if (HEADERS_TOO_LARGE.has(cause.code ?? '')) {
    const message = 'the upstream sent response headers that are larger than the gateway reads'
    return new GatewayError('upstream_invalid', message, { cause })
  }
  if (isMalformed(cause)) return new GatewayError('upstream_invalid', 'the upstream sent a response that is not valid HTTP', { cause })
  return new GatewayError('upstream_reset', 'the upstream closed the connection without a response', { cause })
}

function isMalformed(error: Error & { code?: string }): boolean {
  if (error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' || error.name === 'HTTPParserError') return true
  if (error.code?.startsWith('HPE_')) return true
  // Recognize an upgrade that was not requested by its message, because undici has no code for it.
  return error.code === 'UND_ERR_SOCKET' && error.message.startsWith('bad ')
}
