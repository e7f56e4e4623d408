import { resolve } from 'node:path'
import { PasswordHashError, parsePasswordHash } from '../../base/secrets/password.ts'
import { checkSecureUrl, warnOfMissingFile } from './auth.ts'
import type { Path } from '../text/document.ts'
import { formatPath, type Findings } from '../text/findings.ts'
import type { RawConfig, RawOidc } from '../raw.ts'
import type { Address, ConsoleConfig, ConsoleUser, OidcConfig } from '../types.ts'
import { checkQuotes } from './values.ts'

const DEFAULT_SCOPES = ['openid', 'email', 'profile']
const DEFAULT_GROUPS_CLAIM = 'groups'
const LOOPBACK = /^(?:127\.|::1$|localhost$)/
const OIDC: Path = ['console', 'oidc']
/** Matches Entra ID issuers for all tenants. With such an issuer, anybody could log in with any mail address. */
const EVERY_TENANT = /\/\/login\.microsoftonline\.[a-z]+\/(?:common|organizations|consumers)\b/

/** @param directory file names are relative to this directory */
export function buildConsole(raw: RawConfig, listen: Address, directory: string, findings: Findings): ConsoleConfig {
  const publicUrl = raw.console?.public_url
  if (raw.console?.oidc !== undefined && publicUrl === undefined && !LOOPBACK.test(listen.host)) {
    findings.warn(OIDC, 'without console.public_url, single sign-on works in browsers on this machine only', 'key')
  }
  return {
    listen,
    publicUrl: publicUrl === undefined ? null : originOf(publicUrl, findings),
    users: buildUsers(raw, findings),
    oidc: raw.console?.oidc === undefined ? null : buildOidc(raw.console.oidc, raw.callers ?? [], directory, findings),
  }
}

/** The URL without a final slash and without the path of the console. */
function originOf(text: string, findings: Findings): string | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || !/^\/(?:console\/?)?$/.test(url.pathname) || url.search + url.hash + url.username !== '') {
    findings.error(['console', 'public_url'], 'this is not the URL of a host, such as https://gateway.example.com')
    return null
  }
  return url.origin
}

function buildOidc(raw: RawOidc, callerIssuers: NonNullable<RawConfig['callers']>, directory: string, findings: Findings): OidcConfig | null {
  const { issuer, client_id: clientId, groups_claim: groupsClaim = DEFAULT_GROUPS_CLAIM, callers = false } = raw
  const [admins, viewers, scopes] = [raw.admins, raw.viewers, raw.scopes].map(list => (list ?? []).filter(item => item !== undefined)) as [string[], string[], string[]]
  if (issuer === undefined || clientId === undefined) return null
  checkSecureUrl(issuer, [...OIDC, 'issuer'], findings)
  if (EVERY_TENANT.test(issuer)) {
    findings.error([...OIDC, 'issuer'], 'this is the issuer of every tenant; write the id of your tenant instead')
  }
  if (callers && !callerIssuers.some(each => each?.issuer?.replace(/\/$/, '') === issuer.replace(/\/$/, ''))) {
    findings.warn([...OIDC, 'callers'], 'no entry of callers has this issuer, so no caller can log in', 'key')
  }
  if (admins.length + viewers.length === 0 && !callers) {
    findings.warn(OIDC, 'nobody can log in: name groups or mail addresses under admins or viewers', 'key')
  }
  return {
    issuer, clientId, admins, viewers, groupsClaim, callers,
    clientSecret: secretOf(raw.client_secret, directory, findings),
    scopes: scopes.length === 0 ? DEFAULT_SCOPES : [...new Set(['openid', ...scopes])],
  }
}

function secretOf(secret: RawOidc['client_secret'], directory: string, findings: Findings): OidcConfig['clientSecret'] {
  const path = [...OIDC, 'client_secret']
  if (typeof secret === 'string') {
    checkQuotes(secret, path, findings)
    return { value: secret }
  }
  if (secret?.file === undefined) return null
  const file = resolve(directory, secret.file)
  warnOfMissingFile(file, [...path, 'file'], 'nobody can log in by single sign-on', findings)
  return { file }
}

function buildUsers(raw: RawConfig, findings: Findings): ConsoleUser[] {
  const users: ConsoleUser[] = []
  for (const [index, user] of (raw.console?.users ?? []).entries()) {
    if (user?.name === undefined || user.password === undefined || user.role === undefined) continue
    if (users.some(({ name }) => name === user.name)) {
      findings.error(['console', 'users', index, 'name'], 'another user has this name; give each its own')
    }
    checkPassword(user.password, ['console', 'users', index, 'password'], findings)
    users.push({ name: user.name, password: user.password, role: user.role })
  }
  return users
}

function checkPassword(hash: string, path: Path, findings: Findings): void {
  try {
    parsePasswordHash(hash)
  } catch (error) {
    if (!(error instanceof PasswordHashError)) throw error
    findings.error(path, `${formatPath(path)}: the hash ${error.message}; make one with: gateway password`)
  }
}
