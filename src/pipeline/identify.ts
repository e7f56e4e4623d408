import { isCrossSiteRequest, namesForeignHost } from '../auth/cross-site.ts'
import { ANONYMOUS, hasExpired, type Identity } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { MIN_SAFE_KEY_LENGTH } from '../base/secrets/key-format.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { isApiPath } from '../protocols/classify-path.ts'
import { KEY_HEADERS } from '../protocols/http/vendor-headers.ts'
import { localAddressOf } from '../proxy/client/client.ts'
import { unknownPath } from './route.ts'

/** Retrying cannot help; tell the SDKs. */
const NOT_RETRYABLE = { headers: { 'x-should-retry': 'false', 'www-authenticate': 'Bearer' } }

/** @throws GatewayError missing_key, invalid_key, too_many_wrong_keys, key_expired, unknown_path */
export function identify(gateway: Gateway, exchange: Exchange): Identity {
  const { target: { path }, presentedKeys: presented } = exchange
  if (exchange.preAuthenticated !== null) return exchange.preAuthenticated
  if (!isApiPath(path) && !gateway.routes.namesPath(path)) throw unknownPath(path)
  let isExpired = false
  const { sharedState: { guessLimit } } = gateway
  for (const key of presented) {
    if (key.length < MIN_SAFE_KEY_LENGTH) checkGuesses(guessLimit.wait(exchange.clientAddress))
    const identity = gateway.keyring.find(key)
    if (identity === null) continue
    if (!hasExpired(identity, gateway.clock)) return identity
    isExpired = true
  }
  if (isExpired) throw new GatewayError('key_expired', 'the API key has expired', NOT_RETRYABLE)
  if (gateway.config.auth === 'open') {
    if (isCrossSiteRequest(exchange.req.headers)) {
      const why = 'auth: open does not apply to pages of other sites; send a key'
      throw new GatewayError('missing_key', why, NOT_RETRYABLE)
    }
    const { req } = exchange
    if (namesForeignHost({ headers: req.headers, localAddress: localAddressOf(req) }, gateway.config.server.hosts)) {
      const why = 'auth: open does not apply to this host name; send a key, or add the name to server.hosts'
      throw new GatewayError('missing_key', why, NOT_RETRYABLE)
    }
    return ANONYMOUS
  }
  // A proxy in front forwards for many clients.
  if (presented.length > 0 && !gateway.trusts(exchange.clientAddress)) {
    checkGuesses(guessLimit.count(exchange.clientAddress, presented.length))
  }
  if (presented.length > 0) throw new GatewayError('invalid_key', 'the API key is not valid', NOT_RETRYABLE)
  const places = `${['Authorization: Bearer', ...KEY_HEADERS.slice(0, -1)].join(', ')} or ${KEY_HEADERS.at(-1)}`
  throw new GatewayError('missing_key', `no API key was sent; send it as ${places}`, NOT_RETRYABLE)
}

/**
 * A short key could be a guess: after too many wrong keys from an address, not even a right one is looked up. A long key is never delayed.
 * @param waitMs until the address may send another wrong key @throws GatewayError too_many_wrong_keys
 */
function checkGuesses(waitMs: number): void {
  if (waitMs === 0) return
  const headers = { 'x-should-retry': 'false', 'retry-after': String(Math.ceil(waitMs / 1_000)) }
  throw new GatewayError('too_many_wrong_keys', 'too many wrong keys came from this address', { headers })
}
