import { readFile } from 'node:fs/promises'
import type { JWTInput } from 'google-auth-library'
import type { Clock } from '../../base/clock.ts'
import { GatewayError, credentialUnavailable } from '../../base/errors.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import type { GoogleAuth } from '../../config/auth-types.ts'
import { CREDENTIAL_PROJECT } from '../../providers/shared/provider.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { checkHeaderSecret, type Authorization } from './credential.ts'
import type { FetchedCredential } from './refreshing-credential.ts'
import { ServerClock } from './server-clock.ts'

type Library = typeof import('google-auth-library')
/** The content of a file with credentials of a service account or of another type. */
type CredentialsFile = JWTInput & { readonly token_uri?: unknown }

interface GoogleToken {
  readonly token: string
  readonly lifetimeMs: number
  /** null = the credentials name no project. */
  readonly project: string | null
  /** The project whose quota the requests use; null = the project of the credentials. */
  readonly quotaProject: string | null
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
/** The library sends a service account's assertion to this URL, even if the file names another URL. */
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const MAX_ASSERTION_LIFETIME_S = 3_600
const DEFAULT_LIFETIME_MS = 10 * 60_000
/** Error codes of Google's OAuth 2.0 server and APIs. */
const ERROR_CODE = /^(?:[a-z_]{1,40}|[A-Z_]{1,40})$/
/** Error codes of the operating system, of name resolution and of undici. */
const NETWORK_ERROR = /^(?:E[A-Z]{2,20}|EAI_[A-Z]+|UND_ERR_[A-Z_]+)$/

/** @returns a function that fetches a token. It reads the file each time, so that a replaced file is used */
export function googleTokens(
  { credentials: file, project: defaultProject }: GoogleAuth, clock: Clock,
): (signal: AbortSignal) => Promise<FetchedCredential> {
  const serverClock = new ServerClock(clock)
  return async signal => {
    const library = await import('google-auth-library')
    const fetched = await (file === null ? metadataToken(library) : fileToken(library, await readCredentials(file), serverClock, signal))
    const { token, lifetimeMs, project, quotaProject } = fetched
    return { authorization: googleAuthorization(token, quotaProject, project ?? defaultProject), lifetimeMs }
  }
}

async function fileToken(library: Library, json: CredentialsFile, clock: ServerClock, signal: AbortSignal): Promise<GoogleToken> {
  const { offset } = clock
  try {
    return await requestToken(library, json, clock, signal)
  } catch (error) {
    // Retry if the response has shown a new clock offset, because Google refuses an assertion whose times do not match Google's clock.
    if (clock.offset === offset) throw error
    return await requestToken(library, json, clock, signal)
  }
}

async function requestToken(
  { GoogleAuth: Auth, JWT, gaxios }: Library, json: CredentialsFile, clock: ServerClock, signal: AbortSignal,
): Promise<GoogleToken> {
  const tokenUrl = tokenUrlOf(json)
  let observes = false
  const fetchImplementation: typeof fetch = async (url, init) => {
    const place = url instanceof Request ? url.url : String(url)
    const response = await boundedFetch(place === TOKEN_URL ? tokenUrl : place, { ...init, signal })
    if (observes) clock.observe(['date', response.headers.get('date') ?? ''])
    return response
  }
  try {
    const client = await new Auth({ credentials: json, scopes: [SCOPE], clientOptions: { transporterOptions: { fetchImplementation } } }).getClient()
    if (client instanceof JWT) {
      observes = true
      const issuedAt = Math.floor(clock.now / 1_000)
      client.additionalClaims = { iat: issuedAt, exp: issuedAt + MAX_ASSERTION_LIFETIME_S }
    }
    const { token } = await client.getAccessToken()
    if (!token) throw credentialUnavailable('the token server sent no valid token')
    const lifetimeMs = (client.credentials.expiry_date ?? Date.now() + DEFAULT_LIFETIME_MS) - Date.now()
    return { token, lifetimeMs, project: client.projectId ?? null, quotaProject: client.quotaProjectId ?? null }
  } catch (error) {
    throw unavailable(gaxios, 'token server', error)
  }
}

/** @throws GatewayError credential_unavailable */
function tokenUrlOf({ token_uri: place }: CredentialsFile): string {
  if (place === undefined) return TOKEN_URL
  const url = URL.parse(String(place))
  if (url === null || !isSecureUrl(url)) throw credentialUnavailable('token_uri in the file is not an https URL')
  return url.href
}

/** Fetches the token and the project of the machine or of the Kubernetes service account. */
async function metadataToken({ gcpMetadata, gaxios }: Library): Promise<GoogleToken> {
  // Set this, because the library sets no deadline if it detects a machine of Google.
  gcpMetadata.setGCPResidency(false)
  const tokenKey = 'instance/service-accounts/default/token'
  const projectKey = 'project/project-id'
  try {
    const found = await gcpMetadata.bulk([
      { metadataKey: tokenKey, params: { scopes: SCOPE }, noResponseRetries: 1 },
      { metadataKey: projectKey, noResponseRetries: 1 },
    ] as const)
    const { access_token: token, expires_in: seconds } = found[tokenKey] as { access_token?: unknown, expires_in?: unknown }
    const project: unknown = found[projectKey]
    if (typeof token !== 'string') throw credentialUnavailable('the metadata server sent no valid token')
    const lifetimeMs = typeof seconds === 'number' ? seconds * 1_000 : DEFAULT_LIFETIME_MS
    return { token, lifetimeMs, project: typeof project === 'string' ? project : null, quotaProject: null }
  } catch (error) {
    throw unavailable(gaxios, 'metadata server', error)
  }
}

/** @throws GatewayError credential_unavailable */
async function readCredentials(file: string): Promise<CredentialsFile> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    throw credentialUnavailable(`the file cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  try {
    const json: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    if (typeof json === 'object' && json !== null) return json as CredentialsFile
  } catch {
    // Drop the error: it contains a part of the file.
  }
  throw credentialUnavailable('the credentials file is not a JSON object')
}

function googleAuthorization(token: string, quotaProject: string | null, project: string | null): Authorization {
  checkHeaderSecret(token)
  const headers = ['authorization', `Bearer ${token}`, ...quotaProject === null ? [] : ['x-goog-user-project', quotaProject]]
  return {
    headersFor: () => headers,
    pathFor: path => {
      if (!path.includes(CREDENTIAL_PROJECT)) return path
      if (project === null) throw credentialUnavailable('the credentials name no project; set vertex.project')
      return path.replace(CREDENTIAL_PROJECT, encodeURIComponent(project))
    },
  }
}

/** The error to report. It contains no message of the library, because that may contain parts of the credentials. */
function unavailable({ GaxiosError }: Library['gaxios'], source: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof GaxiosError && error.response !== undefined) {
    const said = errorCode(error.response.data)
    return credentialUnavailable(`the ${source} responded ${error.response.status}${said === null ? '' : ` (${said})`}`)
  }
  const { code, cause, name } = error as NodeJS.ErrnoException & { readonly cause?: { readonly code?: unknown, readonly cause?: { readonly code?: unknown } } }
  const network = [code, cause?.code, cause?.cause?.code].find(each => typeof each === 'string' && NETWORK_ERROR.test(each))
  if (network !== undefined) return credentialUnavailable(`the ${source} cannot be reached: ${network}`)
  return credentialUnavailable(`the ${source} sent no token of Google Cloud: ${code ?? name}`)
}

function errorCode(body: unknown): string | null {
  const { error } = (body ?? {}) as { error?: unknown }
  const code = typeof error === 'object' && error !== null ? (error as { status?: unknown }).status : error
  return typeof code === 'string' && ERROR_CODE.test(code) ? code : null
}
