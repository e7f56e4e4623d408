import type { Auth, GoogleAuth } from '../auth-types.ts'
import { checkSecureUrl } from './auth.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { namesProject } from './google-key-file.ts'
import type { RawUpstream } from '../raw.ts'
import type { ProviderConfig } from '../types.ts'

export interface CloudUpstream {
  readonly provider: ProviderConfig
  readonly url: URL | null
  /** The protocols that the upstream speaks; null = they depend on the model. */
  readonly speaks: readonly string[] | null
}

/** Keys of an upstream that replace `url`. */
export const PROVIDER_KEYS = ['azure', 'bedrock', 'vertex'] as const
/** Matches a region or a multi-region of Google, which becomes a part of a host name. */
const LOCATION = /^[a-z]+(?:-[a-z]+\d+)?$/
/** Matches project numbers and project ids, including ids of old projects that contain a domain. */
const PROJECT = /^[a-z\d](?:[a-z\d.:-]*[a-z\d])?$/
/** Hosts of locations that are larger than a region. Each region has its own host. */
const VERTEX_HOSTS: ReadonlyMap<string, string> = new Map(Object.entries({
  global: 'aiplatform.googleapis.com',
  us: 'aiplatform.us.rep.googleapis.com',
  eu: 'aiplatform.eu.rep.googleapis.com',
}))

/** @returns null = the upstream has a url, or is a simulator */
export function buildCloudUpstream(raw: RawUpstream, auth: Auth | null, path: Path, findings: Findings): CloudUpstream | null {
  if (raw.azure !== undefined) {
    const { endpoint, api_version: apiVersion = 'v1' } = raw.azure
    if (!/^(?:v1|\d{4}-\d\d-\d\d(?:-preview)?)$/.test(apiVersion)) {
      findings.error([...path, 'azure', 'api_version'], 'this is neither v1 nor a date such as 2025-04-01-preview')
    }
    const url = endpointOf(endpoint, [...path, 'azure', 'endpoint'], findings)
    return { provider: { kind: 'azure', apiVersion }, url, speaks: ['chat', 'responses', 'media'] }
  }
  if (raw.bedrock !== undefined) {
    const { region = '', endpoint } = raw.bedrock
    const host = `bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
    const url = endpointOf(endpoint, [...path, 'bedrock', 'endpoint'], findings, host)
    return { provider: { kind: 'bedrock' }, url, speaks: ['messages'] }
  }
  if (raw.vertex !== undefined) return buildVertex(raw, raw.vertex, auth, path, findings)
  return null
}

function buildVertex(
  { speaks }: RawUpstream, raw: NonNullable<RawUpstream['vertex']>, auth: Auth | null, path: Path, findings: Findings,
): CloudUpstream {
  const { project = null, location = 'global', endpoint } = raw
  const place = [...path, 'vertex']
  if (!LOCATION.test(location)) findings.error([...place, 'location'], 'this is not a location such as global, us-central1 or eu')
  if (project !== null && !PROJECT.test(project)) findings.error([...place, 'project'], 'this is not a project id')
  if (project === null && !findings.has([...place, 'project'])) {
    if (!mayNameProject(auth)) findings.error(place, 'a project is needed, unless auth is google, whose credentials can name it', 'key')
    else if (!googleMembers(auth).every(hasProject)) {
      findings.warn(place, 'a project is needed: the credentials file has no project_id, and GOOGLE_CLOUD_PROJECT is not set', 'key')
    }
  }
  if (speaks !== undefined) findings.error([...path, 'speaks'], 'the model decides which protocol Vertex AI speaks; remove it', 'key')
  const host = VERTEX_HOSTS.get(location) ?? `${location}-aiplatform.googleapis.com`
  return { provider: { kind: 'vertex', project, location }, url: endpointOf(endpoint, [...place, 'endpoint'], findings, host), speaks: null }
}

function mayNameProject(auth: Auth | null): boolean {
  if (auth?.kind === 'pool') return auth.pool.every(mayNameProject)
  return auth?.kind === 'google'
}

function googleMembers(auth: Auth | null): GoogleAuth[] {
  const members = auth?.kind === 'pool' ? auth.pool : auth === null ? [] : [auth]
  return members.filter(member => member.kind === 'google')
}

/** Tells whether a project is known. Without a credentials file, the metadata server names the project. */
function hasProject({ credentials, project }: GoogleAuth): boolean {
  return project !== null || credentials === null || namesProject(credentials)
}

/** @param defaultHost used without an endpoint; absent = an endpoint is required, and the schema reports it if it is missing */
function endpointOf(text: string | undefined, path: Path, findings: Findings, defaultHost?: string): URL | null {
  if (text === undefined) return defaultHost === undefined ? null : URL.parse(`https://${defaultHost}`)
  checkSecureUrl(text, path, findings)
  const url = URL.parse(text)
  if (url !== null && (url.pathname !== '/' || url.search !== '' || url.hash !== '')) {
    findings.error(path, 'an endpoint is a scheme and a host, without a path')
  }
  return url
}
