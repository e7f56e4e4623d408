import { GatewayError, type ErrorCode } from '../../base/errors.ts'

/** RFC 6750 section 3. Retrying cannot help; tell the SDKs. */
const INVALID_TOKEN = { 'x-should-retry': 'false', 'www-authenticate': 'Bearer error="invalid_token"' }
const FORBIDDEN = { 'x-should-retry': 'false' }

export type TokenErrorCode = Exclude<Extract<ErrorCode, `token_${string}`>, 'token_keys_unavailable'>

/** For the caller: they say nothing of the operator's configuration. */
const MESSAGES: Readonly<Record<TokenErrorCode, string>> = {
  token_issuer: 'the issuer of the token is not known here',
  token_signature: 'the signature of the token is not valid, or its key or algorithm is not accepted',
  token_audience: 'the token is for another audience; get one for this gateway',
  token_not_yet_valid: 'the token is not valid yet; check the clock of the machine that made it',
  token_expired: 'the token has expired; get a new one',
  token_claims: 'the claims of the token do not admit you to this gateway; ask its operator',
  token_group: 'you are in no group that may use this gateway; ask its operator',
}

/** @param cause for the operator */
export function tokenError(code: TokenErrorCode, cause: string): GatewayError {
  const headers = code === 'token_claims' || code === 'token_group' ? FORBIDDEN : INVALID_TOKEN
  return new GatewayError(code, MESSAGES[code], { headers, cause: new Error(cause) })
}

/** How far a token came: of several refusals, the caller gets the last one of these. */
export const REFUSALS = Object.keys(MESSAGES) as readonly TokenErrorCode[]
