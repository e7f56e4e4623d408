import type { CryptoKey, JWTHeaderParameters } from 'jose'
import { GatewayError } from '../../base/errors.ts'
import { isObject } from '../../base/is-object.ts'
import { LEEWAY_S, callerOf, type CompiledIssuer, type VerifiedCaller } from './caller-of.ts'
import { tokenError } from './token-error.ts'

/** JSON in base64url begins like this, and a signed token has two dots (RFC 7515 section 7.1). */
const TOKEN = /^eyJ[\w-]*\.eyJ[\w-]*\.[\w-]*$/

export interface UnverifiedToken { readonly header: JWTHeaderParameters, readonly issuer: string | null }

/** Reads a token without believing it; null = the text is no token. */
export function readToken(text: string): UnverifiedToken | null {
  if (!TOKEN.test(text)) return null
  const [head = '', body = ''] = text.split('.', 2)
  const header = jsonOf(head)
  const claims = jsonOf(body)
  if (header === null || claims === null || typeof header['alg'] !== 'string') return null
  return { header: header as JWTHeaderParameters, issuer: typeof claims['iss'] === 'string' ? claims['iss'] : null }
}

function jsonOf(part: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return isObject(value) ? value : null
  } catch {
    // Not JSON: the text is a key that looks like a token.
    return null
  }
}

/** @param now ms since 1970 @throws GatewayError token_... */
export async function verifyToken(text: string, keys: readonly CryptoKey[], issuer: CompiledIssuer, now: number): Promise<VerifiedCaller> {
  const { jwtVerify } = await import('jose/jwt/verify')
  const options = {
    issuer: issuer.issuer, audience: [...issuer.audience], algorithms: [...issuer.algorithms],
    clockTolerance: LEEWAY_S, currentDate: new Date(now), requiredClaims: ['exp'],
  }
  let refusal = tokenError('token_signature', `${issuer.name}: the issuer has no such key`)
  for (const key of keys) {
    try {
      const { payload } = await jwtVerify(text, key, options)
      return callerOf(payload, issuer)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      refusal = refusalOf(error, issuer)
      if (refusal.code !== 'token_signature') break
    }
  }
  throw refusal
}

function refusalOf(error: unknown, { name }: CompiledIssuer): GatewayError {
  const { code, claim } = error as { readonly code?: string, readonly claim?: string }
  switch (code) {
    case 'ERR_JWT_EXPIRED': return tokenError('token_expired', name)
    case 'ERR_JWT_INVALID': return tokenError('token_claims', `${name}: the claims are not well-formed`)
    case 'ERR_JWT_CLAIM_VALIDATION_FAILED':
      if (claim === 'aud') return tokenError('token_audience', name)
      if (claim === 'nbf') return tokenError('token_not_yet_valid', name)
      return tokenError('token_claims', `${name}: the claim ${claim} is missing or not valid`)
    default: return tokenError('token_signature', `${name}: ${code ?? 'the signature cannot be checked'}`)
  }
}
