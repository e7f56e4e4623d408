import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { everyTarget } from '../config/sections/routes.ts'
import type { Auth } from '../config/auth-types.ts'
import { CREDENTIAL_NAME } from '../config/text/secrets.ts'
import type { Config, Upstream } from '../config/types.ts'
import type { CredentialState } from './credentials/credential-state.ts'
import type { Authorization, Credential, HeaderList } from './credentials/credential.ts'
import { openCredential } from './credentials/open-credential.ts'
import type { CredentialOptions } from './credentials/pool-credential.ts'
import { RateLimitWindow } from './credentials/rate-limit-window.ts'
import { Refusals } from './credentials/refusals.ts'
import { providerAt } from '../protocols/endpoint/gen-ai.ts'
import { providerOf } from '../providers/index.ts'
import type { Provider } from '../providers/shared/provider.ts'
import { prefixOf } from '../proxy/upstream/upstream-address.ts'
import { headerRules } from '../proxy/upstream/headers.ts'
import { UpstreamSecrets } from '../proxy/upstream/secret-mask.ts'
import { createTransport, type Transport, type TransportOptions, type UpstreamAddress } from '../proxy/upstream/transport.ts'

/** An upstream with its connections. */
export interface LiveUpstream extends UpstreamAddress {
  readonly config: Upstream
  /** The socket of the in-process simulator; null = not the simulator. */
  readonly socketPath: string | null
  readonly connections: Connections
  /** The cloud provider; null = the upstream has the vendor's own API. */
  readonly provider: Provider | null
  /** OpenTelemetry's name of the vendor that owns the host; null = unknown. */
  readonly vendor: string | null
  /** The operator's; null = the upstream needs none, or gets the client's own. */
  readonly credential: SharedCredential | null
  readonly secrets: UpstreamSecrets
}

/**
 * The connections to an upstream. A reload keeps the connections if it does not change the upstream. The connections close when no
 * configuration uses them.
 */
export class Connections {
  readonly transport: Transport
  /** Identifies address, CA, proxy and connection age: with an equal key, a reload keeps the connections. */
  readonly connectionKey: string
  /** The connect timeout, ms. */
  readonly timeout: number
  #holders = 0

  constructor(transport: Transport, connectionKey: string, timeout: number) {
    this.transport = transport
    this.connectionKey = connectionKey
    this.timeout = timeout
  }

  retain(): void {
    this.#holders++
  }

  release(): void {
    this.#holders--
    if (this.#holders === 0) void this.transport.close()
  }
}

/** The credential of an upstream. A reload keeps it if `auth` does not change. */
export class SharedCredential {
  readonly credential: Credential
  readonly auth: Auth
  readonly refusals: Refusals
  readonly #clock: Clock
  /** The headers of the latest response, and when the response arrived (ms since 1970); null = no response yet. */
  #latest: { readonly headers: HeaderList, readonly at: number } | null = null
  #holders = 0

  constructor(credential: Credential, auth: Auth, clock: Clock) {
    this.#clock = clock
    this.credential = credential
    this.auth = auth
    this.refusals = new Refusals(clock)
  }

  retain(): void {
    this.#holders++
  }

  /** Call this for each response to a request with this authorization. */
  responded(authorization: Authorization, status: number, headers: HeaderList): void {
    this.credential.responded?.(authorization, status, headers)
    this.#latest = { headers, at: this.#clock.wall() }
  }

  /** One state for each credential of a pool, or for the only credential. */
  states(): readonly CredentialState[] {
    const states = this.credential.states()
    if (states.length !== 1 || this.#latest === null) return states
    // Parse the headers here and not at each response, because the states are rarely requested.
    const window = new RateLimitWindow()
    window.update(this.#latest.headers, this.#clock.monotonic(), this.#latest.at)
    return states.map(state => ({ ...state, rateLimits: state.rateLimits ?? window.limits }))
  }

  release(): void {
    this.#holders--
    if (this.#holders === 0) this.credential.close()
  }
}

type UpstreamParts = Omit<CredentialOptions, 'upstream'>

/**
 * Creates the upstreams of a configuration without connecting. Keeps connections of `before` if address and CA are equal, and keeps
 * credentials of `before` if `auth` is equal.
 * @param simulatorSocket socket of the in-process simulator; null = no upstream needs the simulator
 * @throws the system's error for a CA file that cannot be read
 */
export function liveUpstreams(
  config: Config, parts: UpstreamParts, simulatorSocket: string | null, before: Iterable<LiveUpstream> = [],
): Map<string, LiveUpstream> {
  const withheld = attributionHeaders(config)
  const known = new Map(Array.from(before, live => [live.config.name, live]))
  return new Map(Array.from(config.upstreams, ([name, upstream]) => {
    const url = upstream.url ?? new URL('http://simulator')
    const socketPath = upstream.simulator ? simulatorSocket : null
    const connectTimeout = maxConnectTimeout(config, upstream)
    const { ca, tls, connectionAge, proxy } = upstream
    const options = { origin: url.origin, socketPath, connectTimeout, ca, tls, connectionAge, proxy }
    const connectionKey = connectionKeyOf(options)
    const old = known.get(name)?.connections
    const connections = old?.connectionKey === connectionKey && old.timeout === connectTimeout
      ? old
      : new Connections(createTransport(options), connectionKey, connectTimeout)
    const { transport } = connections
    const provider = upstream.provider && providerOf(upstream.provider)
    const credential = credentialOf(upstream, parts, known.get(name)?.credential ?? null)
    const address = { url, host: url.host, prefix: prefixOf(url), headerRules: headerRules(upstream, provider?.droppedHeaders, withheld), transport }
    const vendor = upstream.url && providerAt(url.hostname)
    return [name, { config: upstream, ...address, socketPath, connections, provider, vendor, credential, secrets: new UpstreamSecrets(secretHeaders(upstream)) }]
  }))
}

/** Headers with the user or a tag are for the gateway. */
function attributionHeaders({ attribution }: Config): string[] {
  if (attribution === null) return []
  return [attribution.user, ...attribution.tags.values()].flat().flatMap(source => (source.from === 'header' ? source.name : []))
}

/** Configured headers that contain a secret; flat. */
function secretHeaders({ headers }: Upstream): string[] {
  return Object.entries(headers).filter(([name]) => CREDENTIAL_NAME.test(name)).flat()
}

/** @param before the upstream's credential in the previous configuration; null = none */
function credentialOf({ name, auth }: Upstream, parts: UpstreamParts, before: SharedCredential | null): SharedCredential | null {
  if (auth === null || auth.kind === 'client') return null
  if (before !== null && isDeepStrictEqual(before.auth, auth)) return before
  return new SharedCredential(openCredential(auth, { ...parts, upstream: name }), auth, parts.clock)
}

/** @returns ms; later than each exchange's deadline, to end connection attempts for which no exchange waits */
function maxConnectTimeout({ routes, timeouts }: Config, upstream: Upstream): number {
  const own = routes.filter(route => everyTarget(route).some(target => target.upstream === upstream)).map(route => route.timeouts.connect)
  return Math.max(timeouts.connect, ...own) + 1_000
}

/** The key depends on the content of the files, because a replaced file needs new connections. */
function connectionKeyOf({ origin, socketPath, ca, tls = null, connectionAge, proxy = null }: TransportOptions): string {
  const read = (file: string | null): string | null => file && readFileSync(file, 'utf8')
  const pair = tls?.pair ?? null
  const text = JSON.stringify([
    origin, socketPath, read(ca), tls, pair && [read(pair.cert), read(pair.key)], connectionAge, proxy, proxy && read(proxy.ca),
  ])
  // A private key must not stay in memory as text.
  return createHash('sha256').update(text).digest('base64')
}
