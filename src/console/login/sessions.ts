import { createHash, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { hasExpired, type Identity } from '../../auth/keyring.ts'
import { seal, unseal } from '../../base/secrets/seal.ts'
import type { ConsoleUser, OidcConfig } from '../../config/types.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { Role } from '../api/shapes.ts'
import { consoleCallerOf, type CallerLogin, type ConsoleCaller } from './console-caller.ts'
import type { Account } from './identity-provider.ts'
import { roleFor } from './roles.ts'
import { expiryOf, type SessionRecord } from '../store/session-table.ts'

export interface Session {
  readonly digest: Buffer
  readonly name: string
  readonly role: Role
  /** The key of a key holder; null = the user is no key holder. */
  readonly identity: Identity | null
  /** The caller of `callers`, who logged in by single sign-on; null = another user. */
  readonly caller: ConsoleCaller | null
  /** The ID token of single sign-on. At the logout it tells the provider which session ends. */
  readonly idToken: string | null
  /** A token that every request that changes something must contain. */
  readonly csrf: string
  /** ms since 1970. Each request extends the session. */
  readonly expiresAt: number
}

/** The user, key or account that a login has verified. */
export type VerifiedLogin = { readonly user: ConsoleUser } | { readonly key: Identity; readonly digest: Buffer } | SingleSignOnLogin

export interface SingleSignOnLogin {
  readonly oidc: OidcConfig
  readonly account: Account
  /** The entries of the configuration that match the account. */
  readonly entries: readonly string[]
  /** Whom the account is on the API; null = no caller, or an entry gives it a role. */
  readonly caller: CallerLogin | null
}

/** The credential of single sign-on. It is stored as JSON in the session table. */
interface OidcCredential {
  readonly issuer: string
  readonly clientId: string
  readonly entries: readonly string[]
  /** Absent = no caller. */
  readonly caller?: CallerLogin
  /** The ID token, encrypted with the session's token. The session's token is not stored. */
  readonly idToken: string
}

export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Hashes a token. A plain hash is enough, because nobody can guess the 256 random bits of a token. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Derives the CSRF token from the session's token, so that it need not be stored. It does not reveal the session's token. */
function csrfOf(token: string): string {
  return createHmac('sha256', token).update('csrf').digest('base64url')
}

export function isCsrf(session: Session, presented: unknown): boolean {
  if (typeof presented !== 'string') return false
  return timingSafeEqual(hash('sha256', presented, 'buffer'), hash('sha256', session.csrf, 'buffer'))
}

/** @param token the token of the session */
export function recordOf(proof: VerifiedLogin, token: string): Pick<SessionRecord, 'kind' | 'name' | 'credential'> {
  if ('oidc' in proof) {
    const { oidc: { issuer, clientId }, account: { mail, subject, idToken }, entries, caller } = proof
    const credential: OidcCredential = { issuer, clientId, entries, ...caller !== null && { caller }, idToken: seal(idTokenKey(token), idToken) }
    return { kind: 'oidc', name: caller?.name ?? mail ?? subject, credential: JSON.stringify(credential) }
  }
  if ('user' in proof) return { kind: 'user', name: proof.user.name, credential: credentialOf(proof.user) }
  return { kind: 'key', name: proof.key.key?.name ?? '', credential: proof.digest.toString('hex') }
}

/** @returns null = the user was changed or removed, the key was revoked, blocked or removed, or no entry matches the account any more */
export function sessionOf(gateway: Gateway, token: string, record: SessionRecord): Session | null {
  const { kind, name, credential } = record
  const common = { digest: digestOf(token), csrf: csrfOf(token), expiresAt: expiryOf(record) }
  if (kind === 'user') {
    const user = gateway.config.console?.users.find(user => user.name === name)
    if (user === undefined || credentialOf(user) !== credential) return null
    return { ...common, name, role: user.role, identity: null, caller: null, idToken: null }
  }
  if (kind === 'oidc') {
    const oidc = gateway.config.console?.oidc ?? null
    const { issuer, clientId, entries, caller, idToken } = JSON.parse(credential) as OidcCredential
    if (oidc === null || oidc.issuer !== issuer || oidc.clientId !== clientId) return null
    const idTokenText = unseal(idTokenKey(token), idToken)
    const found = caller === undefined ? null : consoleCallerOf(gateway, caller)
    if (found !== null) return { ...common, name, role: 'key', identity: found.identity, caller: found, idToken: idTokenText }
    const role = roleFor(oidc, entries)
    return role && { ...common, name, role, identity: null, caller: null, idToken: idTokenText }
  }
  const identity = gateway.keyring.findByDigest(Buffer.from(credential, 'hex'))
  if (identity === null || identity.key?.name !== name || hasExpired(identity, gateway.clock)) return null
  return { ...common, name, role: 'key', identity, caller: null, idToken: null }
}

function idTokenKey(token: string): Buffer {
  return createHmac('sha256', token).update('id_token').digest()
}

function credentialOf({ name, password, role }: ConsoleUser): string {
  return createHash('sha256').update(JSON.stringify([name, password, role])).digest('hex')
}
