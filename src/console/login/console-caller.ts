import { hash } from 'node:crypto'
import { callerDigest, callerOf, compileIssuer } from '../../auth/callers/caller-of.ts'
import { textOf } from '../../auth/callers/callers.ts'
import { identityOf, type Identity } from '../../auth/keyring.ts'
import { GatewayError } from '../../base/errors.ts'
import type { CallerIssuer } from '../../config/caller-types.ts'
import type { OidcConfig } from '../../config/types.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import { compileGlobs } from '../../config/glob.ts'
import type { Claims } from './mail-address.ts'

/** What a login has found out about a caller. */
export interface CallerLogin {
  /** As on the API: `corp:alice@example.com`. */
  readonly name: string
  /** null = none, and none is needed. */
  readonly group: string | null
  /** Hash of the entry of `callers` that admitted the caller: if the entry changes, the caller logs in again. */
  readonly entry: string
}

/** A caller who is logged in. */
export interface ConsoleCaller {
  readonly login: CallerLogin
  readonly issuer: CallerIssuer
  readonly identity: Identity
}

/** The claims that name callers of this provider and give them their groups. */
export function callerClaims(gateway: Gateway, oidc: OidcConfig): readonly string[] {
  return entriesOf(gateway, oidc).flatMap(({ caller, groups, require }) => [caller, ...groups === null ? [] : [groups.claim], ...require.keys()])
}

/**
 * Finds the caller by the same rules as on the API. The audience is not compared, because the token is for the console.
 * @returns null = no entry of `callers` admits the account
 */
export function callerLoginOf(gateway: Gateway, oidc: OidcConfig, claims: Claims): CallerLogin | null {
  for (const issuer of entriesOf(gateway, oidc)) {
    try {
      const { name, group } = callerOf(claims, compileIssuer(issuer, compileGlobs))
      return gateway.keyring.isBlocked(callerDigest(name)) ? null : { name, group, entry: hashOf(issuer) }
    } catch (error) {
      // The next entry may admit the account.
      if (!(error instanceof GatewayError)) throw error
    }
  }
  return null
}

/** @returns null = the caller is blocked, or its entry was changed or removed */
export function consoleCallerOf({ config, keyring }: Gateway, login: CallerLogin): ConsoleCaller | null {
  const { name, group, entry } = login
  const issuer = config.console?.oidc?.callers !== true ? undefined : config.callers.find(each => name.startsWith(`${each.name}:`) && hashOf(each) === entry)
  const digest = callerDigest(name)
  if (issuer === undefined || keyring.isBlocked(digest)) return null
  const key = { name, digest, models: null, limits: issuer.limits, ...group !== null && { group } }
  return { login, issuer, identity: identityOf(key, compileGlobs, config.groups) }
}

function entriesOf({ config }: Gateway, { issuer, callers }: OidcConfig): readonly CallerIssuer[] {
  return !callers ? [] : config.callers.filter(each => sameIssuer(each.issuer, issuer))
}

/** The console's issuer is a URL for discovery, so a final slash makes no difference there. */
function sameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '')
}

function hashOf(issuer: CallerIssuer): string {
  return hash('sha256', textOf(issuer), 'base64url')
}
