import type { EditRules } from './edit-types.ts'
import type { Auth } from './auth-types.ts'
import type { AttributionConfig } from './attribution-types.ts'
import type { CallerIssuer } from './caller-types.ts'
import type { CheckConfig } from './check-types.ts'
import type { ClusterConfig } from './cluster-types.ts'
import type { HookConfig } from './hook-types.ts'
import type { Group, Key, Limits, QueueLimits } from './key-types.ts'
import type { Model } from './price-types.ts'
import type { ProxyRules, ProxyServer } from '../base/outgoing-proxy.ts'

/**
 * The configuration as the gateway uses it: checked, with all defaults and names resolved. load.ts builds it once and freezes it. Durations
 * are in ms, sizes in bytes, prices in USD per million tokens. File paths are absolute.
 */

export interface Config {
  readonly file: string
  /** The text of the file. The console shows it with secrets masked. */
  readonly text: string
  readonly server: ServerConfig
  readonly console: ConsoleConfig | null
  readonly docs: { readonly listen: Address } | null
  /** `keys` (the default): every request needs a key. `open`: only requests from web pages of other sites need a key. */
  readonly auth: 'keys' | 'open'
  readonly timeouts: Timeouts
  /** null = all connections are direct, except those of upstreams with a proxy. */
  readonly proxy: ProxyRules | null
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** The routes in the order of the file. The first route that matches is used. */
  readonly routes: readonly Route[]
  readonly models: ReadonlyMap<string, Model>
  readonly groups: ReadonlyMap<string, Group>
  readonly keys: readonly Key[]
  readonly callers: readonly CallerIssuer[]
  readonly checks: ReadonlyMap<string, CheckConfig>
  readonly hooks: ReadonlyMap<string, HookConfig>
  /** Changes of all requests; null = none. */
  readonly edit: EditRules | null
  /** Default limits of every key, for each figure that the key does not set; null = none. */
  readonly limits: Limits | null
  /** null = requests have neither users nor tags. */
  readonly attribution: AttributionConfig | null
  readonly ledger: LedgerConfig | null
  readonly billing: BillingConfig
  /** null = no alerts are sent. */
  readonly alerts: AlertsConfig | null
  readonly log: LogConfig
  readonly telemetry: TelemetryConfig
  /** null = this gateway is not in a cluster. */
  readonly cluster: ClusterConfig | null
}

export interface WebhookConfig {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The secret with which events are signed; null = events are not signed. */
  readonly secret: string | null
}

export interface AlertsConfig {
  readonly webhook: WebhookConfig | null
  /** Percentages of a key's budget at which an alert is sent, ascending. */
  readonly budget: readonly number[]
}

export interface TelemetryConfig {
  /** null = no listener for Prometheus. */
  readonly prometheus: { readonly listen: Address } | null
  readonly otlp: OtlpConfig | null
  readonly conventions: 'v1.41' | 'latest'
  /** URL of traces; contains `{trace_id}`. null = the console has no links to traces. */
  readonly traceUrl: string | null
}

export interface OtlpConfig {
  /** URL of the collector without a final slash; null = from the environment. */
  readonly endpoint: string | null
  readonly protocol: 'http/protobuf' | 'http/json' | 'grpc'
  readonly headers: Readonly<Record<string, string>>
  readonly traces: boolean
  readonly metrics: boolean
  /** ms between two pushes of metrics. */
  readonly interval: number
  /** The share of traces to record, 0 to 1. For traces that start at this gateway. */
  readonly sample: number
  /** true if traces contain prompts and responses. */
  readonly content: boolean
  /** The rules for connections to the collector; null = direct. */
  readonly proxy: ProxyRules | null
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface LogConfig {
  readonly level: LogLevel
  /** Rules for which bodies to keep. The first rule that matches the key is used. */
  readonly bodies: readonly BodyRule[]
}

export interface BodyRule {
  /** The name of a key, or a glob of names. */
  readonly key: string
  readonly keep: number
  /** Maximum bytes of each request body and each response body. */
  readonly limit: number
}

/** `[::1]:8080` has the host `::1` and the port 8080. An empty host means all interfaces. Port 0 means any free port. */
export interface Address {
  readonly host: string
  readonly port: number
  /** The number of an open descriptor that already listens. If set, host and port are not used. */
  readonly fd?: number
}

export interface ServerConfig {
  readonly listen: Address
  /** true if other processes may listen on the same address and share the connections (SO_REUSEPORT). */
  readonly reusePort: boolean
  /** Number of processes that serve. If there are several, a supervisor starts them. */
  readonly workers: number
  /** PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** Maximum bytes of one request body, before decompression and after it. */
  readonly bodyLimit: number
  /** Maximum bytes of all request bodies in memory at the same time. */
  readonly bodyMemory: number
  /** Maximum number of running exchanges. */
  readonly maxInFlight: number
  /** Maximum number of client connections to each listener. */
  readonly maxConnections: number
  /** ms after which an idle client connection is closed. */
  readonly idle: number
  /** Addresses or CIDR blocks whose headers x-forwarded-* and request id are used. */
  readonly trustedProxies: readonly string[]
  /** Host names, in lower case, that an open gateway and the console accept. Loopback names are always accepted. */
  readonly hosts: readonly string[]
  /** true if response headers name the upstream and the number of attempts. */
  readonly revealUpstream: boolean
  /** ms for running exchanges to finish. Begins after SIGTERM and `drainDelay`. */
  readonly drain: number
  /** ms between SIGTERM and the refusal of requests. The status reports draining from SIGTERM on. */
  readonly drainDelay: number
}

export interface ConsoleConfig {
  readonly listen: Address
  /** The URL at which browsers reach the console, without a path: `https://gateway.example.com`; null = not configured. */
  readonly publicUrl: string | null
  readonly users: readonly ConsoleUser[]
  readonly oidc: OidcConfig | null
}

/** The identity provider for logins, and the roles of its users. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  /** null = a public client, which has no secret. */
  readonly clientSecret: { readonly value: string } | { readonly file: string } | null
  /** Groups, mail addresses, or `*@example.com` for all addresses of a domain. */
  readonly admins: readonly string[]
  readonly viewers: readonly string[]
  /** The scopes to request, including `openid`. */
  readonly scopes: readonly string[]
  /** The claim that contains the groups: a name, or a path such as `realm_access.roles`. */
  readonly groupsClaim: string
  /** Whether callers of this issuer, whom `callers` of the configuration admits, can log in and see their own use. */
  readonly callers: boolean
}

export interface ConsoleUser { readonly name: string, readonly password: string, readonly role: 'admin' | 'viewer' }

/** All values are in ms. */
export interface Timeouts {
  readonly connect: number
  /** Maximum wait for the first byte of the response body. */
  readonly firstByte: number
  /** Maximum wait between two bytes that are read or written. */
  readonly idle: number
  /** Maximum time of the whole request, including a stream. */
  readonly total: number
}

export interface Upstream {
  readonly name: string
  /** The URL's path is put before the path of each request. null = the upstream is the in-process simulator. */
  readonly url: URL | null
  /** Text that replaces `/v1` in paths, without a final slash; null = `/v1` stays. */
  readonly v1: string | null
  readonly simulator: boolean
  /** The cloud provider whose paths and framing the upstream uses; null = the upstream has the vendor's own API. */
  readonly provider: ProviderConfig | null
  /** The operator's credential; null = the upstream needs none. */
  readonly auth: Auth | null
  /** Headers, by lower-case name, that are set if the client did not send them. */
  readonly headers: Readonly<Record<string, string>>
  /** true if the upstream accepts WebSocket upgrades. */
  readonly websocket: boolean
  /** The lower-case name of the header that contains the version of the messages protocol. */
  readonly versionHeader: string
  /** `ask`: stream_options.include_usage is added to chat streams. `as_is`: it is not added. */
  readonly usage: 'ask' | 'as_is'
  /**
   * The protocols that the upstream accepts. Other requests are translated to the first of them. null = all requests are accepted without
   * translation.
   */
  readonly speaks: readonly string[] | null
  readonly models: ReadonlyMap<string, Model>
  /** PEM file with additional trusted roots; null = none. */
  readonly ca: string | null
  /** null = direct */
  readonly proxy: ProxyServer | null
  /** null = no certificate of the gateway's own, and the name of the url. */
  readonly tls: UpstreamTls | null
  /** ms after which a connection gets no more requests. */
  readonly connectionAge: number
  /** Limits for all requests to the upstream together; null = no limits. */
  readonly limits: UpstreamLimits | null
  /** The path of the health check, and the ms between two checks; null = no health check. */
  readonly health: { readonly path: string; readonly every: number } | null
}

export interface UpstreamTls {
  /** PEM files; null = the gateway shows no certificate. */
  readonly pair: { readonly cert: string, readonly key: string, readonly passphrase: string | null } | null
  /** The name that the upstream's certificate must have; null = the host of the url. */
  readonly serverName: string | null
}

/** Limits that are counted like the limits of a group. */
export interface UpstreamLimits {
  /** A name that no key and no group has. */
  readonly name: string
  readonly isGroup: true
  readonly limits: Limits
}

export type ProviderConfig = AzureConfig | BedrockConfig | VertexConfig

export interface BedrockConfig { readonly kind: 'bedrock' }

export interface AzureConfig {
  readonly kind: 'azure'
  /** `v1`, or a date, such as `2025-04-01-preview`. */
  readonly apiVersion: string
}

export interface VertexConfig {
  readonly kind: 'vertex'
  /** null = the project that the credentials name. */
  readonly project: string | null
  /** `global`, a region such as `us-central1`, or a multi-region (`us`, `eu`). */
  readonly location: string
}

export interface Route {
  readonly index: number
  readonly line: number
  /** Description of the route: `routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)`. */
  readonly text: string
  /** A glob that the path without its query must match; null = any path. */
  readonly path: string | null
  /** Globs, one of which the client's model name must match; null = any model, or no model. */
  readonly models: readonly string[] | null
  readonly targets: readonly Target[]
  readonly strategy: 'ordered' | 'weighted' | 'least_busy' | 'fastest'
  /**
   * Requests with the same key, or with the same value of a header, go to the same target while that target is healthy; null = no affinity.
   */
  readonly affinity: Affinity | null
  /** Maximum number of attempts after the first attempt, at any target. */
  readonly retries: number
  /** The target for a request that was refused for one of these reasons; null = the client gets the refusal. */
  readonly on: { readonly contextLength: Target | null; readonly contentFilter: Target | null }
  /** Whether a stream that breaks is reported to the client, continued by another target, or held until it is complete. */
  readonly resume: ResumeMode
  /** ms without a response after which the gateway tries another target at the same time; null = never. */
  readonly hedgeAfter: number | null
  /** What happens to a request whose target does not speak the protocol of the request. */
  readonly translate: TranslateMode
  /** Names of the checks of its requests. */
  readonly checks: readonly string[]
  /** Names of the hooks of its requests. */
  readonly hooks: readonly string[]
  /** Changes of its requests; null = none. */
  readonly edit: EditRules | null
  /** true: prompts that are longer than the context of a target's model do not go to the target. */
  readonly fit: boolean
  /** How requests wait for limits without a queue of their own; absent or null = they are refused. */
  readonly queue?: QueueLimits | null
  /** The timeouts of the route. Timeouts that the route does not set are the defaults. */
  readonly timeouts: Timeouts
}

/** `continue_or_hold`: streams that no target can continue are held. */
export type ResumeMode = 'off' | 'continue' | 'hold' | 'continue_or_hold'

/** `lenient` drops fields that the target's protocol lacks. `strict` refuses requests with such fields. `off` refuses all translation. */
export type TranslateMode = 'lenient' | 'strict' | 'off'

export interface Target {
  readonly upstream: Upstream
  /** The upstream's name of the model; null = the client's name. */
  readonly model: string | null
  readonly weight: number
  /** true if the target can continue a response that it gets as the last message. */
  readonly prefill: boolean
}

/** Affinity by the client's key, or by the value of a header. The name of the header is in lower case. */
export type Affinity = { readonly by: 'key' } | { readonly by: 'header'; readonly name: string }

export interface LedgerConfig {
  /** Path of the SQLite file. */
  readonly file: string
  /** ms for which rows are kept; null = without limit. */
  readonly keep: number | null
}

export interface BillingConfig {
  /** What is billed if the client disconnects before it gets a response: `prompt` = the estimated prompt; `none` = nothing. */
  readonly abandoned: 'prompt' | 'none'
  /** Number of output tokens to reserve for a request that does not limit its output. */
  readonly assumedOutput: number
}
