import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { secretText } from '../../base/secrets/secret-text.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import { OWN_CREDENTIAL_HEADERS } from '../../protocols/http/vendor-headers.ts'
import type { Auth, MemberAuth } from '../auth-types.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { defaultCredentialsFile, defaultProject } from './google-defaults.ts'
import { checkGoogleKeyFile } from './google-key-file.ts'
import { checkHeaderValue, headerName } from './header.ts'
import type { RawAuth, RawSecret } from '../raw.ts'
import { checkQuotes, timerDurationOf } from './values.ts'

const DEFAULT_COMMAND_INTERVAL_MS = 15 * 60_000
/** Keys of `auth` that define a form, and the valid combinations. */
const FORM_KEYS = ['bearer', 'header', 'value', 'oauth2', 'azure', 'aws', 'google', 'pool', 'client']
const FORMS = new Set(['bearer', 'header and value', 'oauth2', 'azure', 'aws', 'google', 'pool', 'client'])

const AWS_HEADERS = ['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256']

const NO_CREDENTIAL = 'requests to this upstream fail'

export interface AuthPlace {
  /** File names are relative to it. */
  readonly directory: string
  /** AWS region; null = the upstream is not at AWS. */
  readonly region: string | null
}

export function buildAuth(raw: RawAuth | undefined, place: AuthPlace, path: Path, findings: Findings): Auth | null {
  if (raw === undefined) return null
  const given = FORM_KEYS.filter(name => findings.has([...path, name])).join(' and ')
  if (!FORMS.has(given)) findings.error(path, 'auth needs exactly one of bearer, header with value, oauth2, azure, aws, google, pool and client', 'key')
  if (raw.client === false) findings.error([...path, 'client'], 'this is true, or absent')
  if (raw.client === true) return { kind: 'client', headers: OWN_CREDENTIAL_HEADERS }
  if (raw.pool === undefined) return buildMember(raw, place, path, findings)
  const pool = raw.pool.map((member, index) => {
    const at = [...path, 'pool', index]
    if (member !== undefined && findings.has([...at, 'pool'])) findings.error([...at, 'pool'], 'a pool cannot contain another pool', 'key')
    return member === undefined ? null : buildMember(member, place, at, findings)
  }).filter(member => member !== null)
  return { kind: 'pool', headers: [...new Set(pool.flatMap(({ headers }) => headers))], pool }
}

function buildMember(
  { bearer, header, value, oauth2, azure, aws, google }: RawAuth, { directory, region }: AuthPlace, path: Path, findings: Findings,
): MemberAuth | null {
  if (aws !== undefined) return buildAws(aws, region, [...path, 'aws'], findings)
  if (oauth2 !== undefined) return buildOAuth2(oauth2, [...path, 'oauth2'], findings)
  if (azure !== undefined) return buildAzure(azure, [...path, 'azure'], findings)
  if (google !== undefined) return buildGoogle(google, directory, [...path, 'google'], findings)
  if (bearer !== undefined) {
    return headerAuth({ header: 'authorization', prefix: 'Bearer ' }, bearer, directory, [...path, 'bearer'], findings)
  }
  if (header === undefined || value === undefined) return null
  const name = headerName(header, [...path, 'header'], findings)
  return headerAuth({ header: name, prefix: '' }, value, directory, [...path, 'value'], findings)
}

function buildOAuth2(
  { token_url: tokenUrl, client_id: clientId, client_secret: clientSecret, scope }: NonNullable<RawAuth['oauth2']>,
  path: Path, findings: Findings,
): MemberAuth | null {
  if (tokenUrl === undefined || clientId === undefined || clientSecret === undefined) return null
  checkSecureUrl(tokenUrl, [...path, 'token_url'], findings)
  checkQuotes(clientSecret, [...path, 'client_secret'], findings)
  return { kind: 'oauth2', headers: ['authorization'], tokenUrl, clientId, clientSecret, scope: scope ?? null }
}

function buildAzure(raw: NonNullable<RawAuth['azure']>, path: Path, findings: Findings): MemberAuth {
  const { tenant = null, client_id: clientId = null, client_secret: clientSecret = null, authority = null } = raw
  if (authority !== null) checkSecureUrl(authority, [...path, 'authority'], findings)
  if (clientSecret !== null) checkQuotes(clientSecret, [...path, 'client_secret'], findings)
  if (clientSecret !== null && (tenant === null || clientId === null)) {
    findings.error([...path, 'client_secret'], 'a client secret needs tenant and client_id', 'key')
  }
  return { kind: 'azure', headers: ['authorization'], tenant, clientId, clientSecret, authority: authority?.replace(/\/+$/, '') ?? null }
}

function buildAws(raw: NonNullable<RawAuth['aws']>, region: string | null, path: Path, findings: Findings): MemberAuth {
  const { profile = null, role_arn: roleArn = null } = raw
  if (region === null) findings.error(path, 'this is for an upstream at bedrock', 'key')
  if (roleArn !== null && !/^arn:[\w-]+:iam::\d{12}:role\/.+$/.test(roleArn)) {
    findings.error([...path, 'role_arn'], 'this is not the ARN of a role, such as arn:aws:iam::123456789012:role/gateway')
  }
  return { kind: 'aws', headers: AWS_HEADERS, profile, roleArn, region: region ?? '' }
}

function buildGoogle({ credentials: name }: NonNullable<RawAuth['google']>, directory: string, path: Path, findings: Findings): MemberAuth {
  const file = name === undefined ? null : resolve(directory, name)
  if (file !== null) warnOfMissingFile(file, [...path, 'credentials'], NO_CREDENTIAL, findings)
  const credentials = file ?? defaultCredentialsFile()
  if (credentials !== null) checkGoogleKeyFile(credentials, file === null ? path : [...path, 'credentials'], NO_CREDENTIAL, findings)
  return { kind: 'google', headers: ['authorization', 'x-goog-user-project'], credentials, project: defaultProject() }
}

/** Secrets are sent to the URL: it must be https or a loopback address. */
export function checkSecureUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  if (url === null || !isSecureUrl(url)) {
    findings.error(path, 'this is not an https URL; plain http is for loopback addresses')
  } else if (url.username !== '' || url.password !== '') {
    findings.error(path, 'a URL must not contain credentials')
  }
}

function headerAuth(
  { header, prefix }: { readonly header: string, readonly prefix: string }, secret: RawSecret, directory: string, path: Path, findings: Findings,
): MemberAuth | null {
  const headers = [header] as const
  if (typeof secret === 'string') {
    checkSecret(secret, prefix, path, findings)
    return { kind: 'static', headers, value: prefix + secret }
  }
  const { file: name, command, every } = secret
  const given = ['file', 'command'].filter(source => findings.has([...path, source]))
  if (given.length !== 1) findings.error(path, 'a secret comes from either a file or a command', 'key')
  if (every !== undefined && !findings.has([...path, 'command'])) {
    findings.error([...path, 'every'], 'this is for a command; a file is read when it changes', 'key')
  }
  if (name !== undefined) {
    const file = resolve(directory, name)
    warnOfMissingFile(file, [...path, 'file'], NO_CREDENTIAL, findings)
    return { kind: 'file', headers, prefix, file }
  }
  if (command === undefined || command.length === 0) return null
  const interval = timerDurationOf(every, [...path, 'every'], DEFAULT_COMMAND_INTERVAL_MS, findings, 1_000)
  return { kind: 'command', headers, prefix, command: command.filter(part => part !== undefined), every: interval }
}

function checkSecret(secret: string, prefix: string, path: Path, findings: Findings): void {
  checkHeaderValue(secret, path, findings)
  checkQuotes(secret, path, findings)
  if (prefix !== '' && /^bearer\s/i.test(secret)) {
    findings.warn(path, 'the gateway adds the word Bearer, and this value already has it; remove it here')
  }
}

/** The file may appear later: until then, only requests that need the secret fail. */
export function warnOfMissingFile(file: string, path: Path, consequence: string, findings: Findings): void {
  try {
    if (secretText(readFileSync(file)) === '') findings.warn(path, `the file is empty; until it has a secret, ${consequence}`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    findings.warn(path, `the file cannot be read (${code}); until it can, ${consequence}`)
  }
}
