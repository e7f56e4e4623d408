import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type * as http from 'node:http'
import { SignJWT, type JWTPayload } from 'jose'
import type { Test } from 'tap'
import { startUpstream } from './upstream.ts'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export interface TokenIssuer {
  readonly issuer: string
  readonly jwks: string
  /** Paths of the requests, in order. */
  readonly requests: string[]
  /** Published keys. */
  keys: SigningKey[]
  /** What it does instead; null = it serves. */
  fault: ((res: http.ServerResponse, path: string) => void) | null
  /** A token for the audience `gateway` that ends in an hour, of the last key. An undefined claim is left out. */
  token(claims?: JWTPayload, key?: SigningKey | null): Promise<string>
}

export function makeKey(kid: string, alg: 'RS256' | 'ES256' | 'EdDSA' = 'ES256'): SigningKey {
  const pair = alg === 'RS256' ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519')
  return { kid, alg, ...pair }
}

/** An issuer of tokens, with a discovery document and public keys. */
export async function startTokenIssuer(t: Test, { now = Date.now }: { readonly now?: () => number } = {}): Promise<TokenIssuer> {
  const { url } = await startUpstream(t, (req, res) => {
    const path = req.url ?? ''
    issuer.requests.push(path)
    if (issuer.fault !== null) {
      issuer.fault(res, path)
      return
    }
    const jwks = { keys: issuer.keys.map(({ kid, alg, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' })) }
    const body = path === '/jwks' ? jwks : path === '/.well-known/openid-configuration' ? { issuer: url, jwks_uri: `${url}/jwks` } : null
    res.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const issuer: TokenIssuer = {
    issuer: url, jwks: `${url}/jwks`, requests: [], keys: [makeKey('first')], fault: null,
    token: async (claims = {}, key = issuer.keys.at(-1) ?? null) => {
      if (key === null) throw new Error('the issuer has no key')
      const seconds = Math.floor(now() / 1_000)
      const payload = { iss: url, aud: 'gateway', sub: 'alice', iat: seconds, exp: seconds + 3_600, ...claims }
      return new SignJWT(payload).setProtectedHeader({ alg: key.alg, ...key.kid !== '' && { kid: key.kid } }).sign(key.privateKey)
    },
  }
  return issuer
}
