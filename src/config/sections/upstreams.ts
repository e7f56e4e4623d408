import type { ProxyRules } from '../../base/outgoing-proxy.ts'
import { buildAuth } from './auth.ts'
import { PROVIDER_KEYS, buildCloudUpstream } from './cloud-upstream.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { checkHeaderValue, headerName } from './header.ts'
import { buildLimits } from './limits.ts'
import { buildTls } from './upstream-tls.ts'
import { upstreamProxy } from './proxy.ts'
import type { RawConfig, RawUpstream } from '../raw.ts'
import type { Config, Upstream } from '../types.ts'
import { timerDurationOf } from './values.ts'

/** ms: a change of DNS takes effect within minutes, and a TLS handshake per some thousand requests costs little. */
const DEFAULT_CONNECTION_AGE = 5 * 60_000
const DEFAULT_CHECK_INTERVAL_MS = 10_000
/** A version at the end of an upstream's path, maybe with an endpoint: the client's path already begins with the version. */
const DUPLICATE_VERSION = /(\/v1(?:alpha|beta1?)?)(?:\/(?:chat\/completions|completions|embeddings|messages|models|responses))?\/?$/
/** The prefix of other vendors' chat paths, which have no /v1. */
const OTHER_VERSION = /^(.*\/(?:v[2-9]|v1(?:beta)?\/openai))\/?$/
/** RFC 3986 section 3.3, approximately: a request line without a query. */
const PATH = /^\/[\x21-\x22\x24-\x3e\x40-\x7e]*$/
const PATH_AND_QUERY = /^\/[\x21-\x22\x24-\x7e]*$/
/** Hosts that refuse `include_usage` with 422, and report the usage of chat streams without it. */
const REPORTS_USAGE_BY_DEFAULT = /(?:^|\.)mistral\.ai$/

/** @param directory file names are relative to it */
export function buildUpstreams(
  raw: RawConfig, directory: string, { models, proxy }: Pick<Config, 'models' | 'proxy'>, findings: Findings,
): Map<string, Upstream> {
  const upstreams = new Map<string, Upstream>()
  for (const [name, upstream] of Object.entries(raw.upstreams ?? {})) {
    if (upstream !== undefined) upstreams.set(name, { ...buildUpstream(name, upstream, directory, proxy, findings), models })
  }
  return upstreams
}

function buildUpstream(
  name: string, raw: RawUpstream, directory: string, rules: ProxyRules | null, findings: Findings,
): Omit<Upstream, 'models'> {
  const path = ['upstreams', name]
  const { version_header: versionHeader = 'anthropic-version' } = raw
  const auth = buildAuth(raw.auth, { directory, region: raw.bedrock?.region ?? null }, [...path, 'auth'], findings)
  const { ca, tls } = buildTls(raw, directory, path, findings)
  checkPlace(raw, path, findings)
  const cloud = buildCloudUpstream(raw, auth, path, findings)
  if (raw.speaks?.includes('converse') && raw.bedrock === undefined) {
    findings.error([...path, 'speaks'], 'converse is for an upstream at bedrock', 'key')
  }
  const url = cloud === null ? buildUrl(raw, [...path, 'url'], findings) : cloud.url
  const limits = buildLimits(raw.limits, [...path, 'limits'], findings)
  return {
    name, url,
    v1: buildV1(raw, [...path, 'v1'], findings),
    simulator: raw.simulator ?? false,
    provider: cloud?.provider ?? null,
    auth,
    headers: buildHeaders(raw.headers ?? {}, auth?.headers ?? [], [...path, 'headers'], findings),
    websocket: raw.websocket ?? false,
    versionHeader: headerName(versionHeader, [...path, 'version_header'], findings),
    usage: raw.usage ?? (url && REPORTS_USAGE_BY_DEFAULT.test(url.hostname) ? 'as_is' : 'ask'),
    speaks: raw.speaks === undefined ? cloud?.speaks ?? null : raw.speaks.filter(name => name !== undefined),
    ca,
    tls,
    proxy: upstreamProxy(raw, url, { rules, ca: rules?.https?.ca ?? null }, [...path, 'proxy'], findings),
    connectionAge: timerDurationOf(raw.connection_age, [...path, 'connection_age'], DEFAULT_CONNECTION_AGE, findings),
    limits: limits && { name: `upstream\t${name}`, isGroup: true, limits },
    health: buildHealth(raw, [...path, 'health'], findings),
  }
}

/** An upstream has exactly one location: a url, the simulator, or a cloud provider. */
function checkPlace(raw: RawUpstream, path: Path, findings: Findings): void {
  const places = ['url', ...PROVIDER_KEYS].filter(key => findings.has([...path, key]))
  const isSimulator = raw.simulator ?? findings.has([...path, 'simulator'])
  if (places.length === 1 && places[0] === 'url' && raw.simulator === true) {
    findings.error([...path, 'simulator'], 'an upstream is either at a url or a simulator; remove one', 'key')
  } else if (places.length + Number(raw.simulator === true) > 1) {
    findings.error(path, `an upstream has exactly one location; remove all but one of ${places.join(' and ')}`, 'key')
  } else if (places.length === 0 && !isSimulator) {
    findings.error(path, 'an upstream needs a url, or simulator: true', 'key')
  }
}

function buildUrl({ url: text, v1 }: RawUpstream, path: Path, findings: Findings): URL | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  // `api.example.com:443` is a URL with the protocol "api.example.com:", and https:///v1 has the host "v1".
  if (url === null || !/^https?:\/\/[^/\\]/i.test(text)) {
    findings.error(path, 'this is not an http or https URL such as https://api.example.com')
    return null
  }
  if (url.username !== '' || url.password !== '') findings.error(path, 'a URL must not contain credentials; put them under auth')
  if (url.search !== '' || url.hash !== '' || /[?#]$/.test(text)) {
    findings.error(path, "a URL must end with its path: the gateway appends the client's path and query")
  }
  if (v1 !== undefined) return url
  const version = DUPLICATE_VERSION.exec(url.pathname)?.[1]
  if (version !== undefined) {
    const message = `this path is added before the client's path, which already begins with ${version}`
    findings.warn(path, `${message}; leave it out, unless the upstream needs it twice`)
  }
  const there = OTHER_VERSION.exec(url.pathname)?.[1]
  if (there !== undefined) {
    const message = "this path is added before the client's path, such as /v1/chat/completions"
    findings.warn(path, `${message}; if it replaces /v1, leave it out and use v1: ${there}`)
  }
  return url
}

/** Replaces the `/v1` of clients' paths; '' = nothing replaces it. */
function buildV1(raw: RawUpstream, path: Path, findings: Findings): string | null {
  if (raw.v1 === undefined) return null
  if (!PATH.test(raw.v1)) findings.error(path, 'a path starts with / and has neither spaces nor a query, such as /api/v4')
  if (raw.url === undefined && !findings.has([...path.slice(0, -1), 'url'])) {
    findings.error(path, 'this is for an upstream at a url; remove it', 'key')
  }
  return raw.v1.replace(/\/+$/, '')
}

function buildHeaders(
  raw: Record<string, string | undefined>, authHeaders: readonly string[], path: Path, findings: Findings,
): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>
  for (const [name, value] of Object.entries(raw)) {
    if (value === undefined) continue
    const key = headerName(name, [...path, name], findings, 'key')
    checkHeaderValue(value, [...path, name], findings)
    if (authHeaders.includes(key)) findings.error([...path, name], 'auth sets this header; remove one', 'key')
    if (key in headers) findings.error([...path, name], 'this header stands here twice; case does not count', 'key')
    headers[key] = value
  }
  return headers
}

function buildHealth({ health }: RawUpstream, path: Path, findings: Findings): Upstream['health'] {
  if (health?.path === undefined) return null
  if (!PATH_AND_QUERY.test(health.path)) findings.error([...path, 'path'], 'a path starts with / and has no spaces, such as /health')
  return { path: health.path, every: timerDurationOf(health.every, [...path, 'every'], DEFAULT_CHECK_INTERVAL_MS, findings) }
}
