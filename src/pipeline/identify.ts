import type { Callers } from '../auth/callers/callers.ts'
import { isCrossSiteRequest, namesForeignHost } from '../auth/cross-site.ts'
import { ANONYMOUS, digestText, hasExpired, type Identity } from '../auth/keyring.ts'
import { GatewayError, type ErrorCode } from '../base/errors.ts'
import { MIN_SAFE_KEY_LENGTH } from '../base/secrets/key-format.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { isApiPath } from '../protocols/classify-path.ts'
import { KEY_HEADERS } from '../protocols/http/vendor-headers.ts'
import { localAddressOf } from '../proxy/client/client.ts'
import { unknownPath } from './route.ts'

/** Retrying cannot help; tell the SDKs. */
const NOT_RETRYABLE = { headers: { 'x-should-retry': 'false', 'www-authenticate': 'Bearer' } }

/** Refusals of tokens that somebody may have made up. */
const MADE_UP: ReadonlySet<ErrorCode> = new Set(['token_signature', 'token_issuer'])

interface Unknown { readonly key: string, readonly at: string }

/**
 * @returns a promise only for a token that has to be verified
 * @throws GatewayError missing_key, invalid_key, too_many_wrong_keys, key_expired, unknown_path, token_...
 */
export function identify(gateway: Gateway, exchange: Exchange): Identity | Promise<Identity> {
  const { target: { path }, presentedKeys: presented } = exchange
  if (exchange.preAuthenticated !== null) return exchange.preAuthenticated
  if (!isApiPath(path) && !gateway.routes.namesPath(path)) throw unknownPath(path)
  let isExpired = false
  let unknown: Unknown[] | null = null
  const { sharedState: { guessLimit } } = gateway
  for (const key of presented) {
    if (key.length < MIN_SAFE_KEY_LENGTH) checkGuesses(guessLimit.wait(exchange.clientAddress))
    const at = digestText(key)
    const identity = gateway.keyring.findAt(at)
    if (identity === null) {
      (unknown ??= []).push({ key, at })
      continue
    }
    if (!hasExpired(identity, gateway.clock)) return identity
    isExpired = true
  }
  if (unknown === null || gateway.callers === null) return withoutKey(gateway, exchange, isExpired, [])
  return findCaller(gateway, exchange, gateway.callers, unknown, isExpired)
}

function findCaller(
  gateway: Gateway, exchange: Exchange, callers: Callers, unknown: readonly Unknown[], isExpired: boolean,
): Identity | Promise<Identity> {
  const refusals: GatewayError[] = []
  const verifying: Promise<Identity | GatewayError>[] = []
  for (const { key, at } of unknown) {
    const found = callers.find(key, at)
    if (found instanceof Promise) verifying.push(found)
    else if (found instanceof GatewayError) refusals.push(found)
    else if (found !== null) return found
  }
  if (verifying.length === 0) return withoutKey(gateway, exchange, isExpired, refusals)
  return Promise.all(verifying).then(results => {
    exchange.throwIfStopped()
    for (const found of results) {
      if (!(found instanceof GatewayError)) return found
      refusals.push(found)
    }
    return withoutKey(gateway, exchange, isExpired, refusals)
  })
}

/** @param refusals of tokens @returns the identity of an open gateway */
function withoutKey(gateway: Gateway, exchange: Exchange, isExpired: boolean, refusals: readonly GatewayError[]): Identity {
  const { presentedKeys: presented } = exchange
  const isOpen = gateway.config.auth === 'open'
  // A client of an open gateway may send a token that is for somebody else.
  const refusal = refusals.find(({ code }) => !isOpen || code !== 'token_issuer')
  if (isExpired) throw new GatewayError('key_expired', 'the API key has expired', NOT_RETRYABLE)
  if (isOpen && refusal === undefined) {
    checkOpenAccess(gateway, exchange)
    return ANONYMOUS
  }
  const wrong = presented.length - refusals.filter(({ code }) => !MADE_UP.has(code)).length
  // A proxy in front forwards for many clients.
  if (wrong > 0 && !gateway.trusts(exchange.clientAddress)) {
    checkGuesses(gateway.sharedState.guessLimit.count(exchange.clientAddress, wrong))
  }
  if (refusal !== undefined) throw refusal
  if (presented.length > 0) throw new GatewayError('invalid_key', 'the API key is not valid', NOT_RETRYABLE)
  const places = `${['Authorization: Bearer', ...KEY_HEADERS.slice(0, -1)].join(', ')} or ${KEY_HEADERS.at(-1)}`
  throw new GatewayError('missing_key', `no API key was sent; send it as ${places}`, NOT_RETRYABLE)
}

/** @throws GatewayError missing_key */
function checkOpenAccess({ config }: Gateway, { req }: Exchange): void {
  if (isCrossSiteRequest(req.headers)) {
    throw new GatewayError('missing_key', 'auth: open does not apply to pages of other sites; send a key', NOT_RETRYABLE)
  }
  if (namesForeignHost({ headers: req.headers, localAddress: localAddressOf(req) }, config.server.hosts)) {
    const why = 'auth: open does not apply to this host name; send a key, or add the name to server.hosts'
    throw new GatewayError('missing_key', why, NOT_RETRYABLE)
  }
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
