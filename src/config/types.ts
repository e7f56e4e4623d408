import type { Auth } from './auth-types.ts'
import type { ClusterConfig } from './cluster-types.ts'
import type { Group, Key, Limits } from './key-types.ts'
import type { Model } from './price-types.ts'

/**
 * The configuration as the rest of the gateway sees it: loaded, checked, with
 * every default filled in and every name resolved. Built once by load.ts and
 * frozen. Durations are milliseconds, sizes are bytes, prices USD per million
 * tokens.
 */

export interface Config {
  /** Absolute path of the file it came from. */
  readonly file: string
  /** What the file said; for the console, which shows it with its secrets masked. */
  readonly text: string
  readonly server: ServerConfig
  readonly console: ConsoleConfig | null
  readonly docs: { readonly listen: Address } | null
  /** `keys` (the default): each request needs one. `open`: only requests from pages of other sites do. */
  readonly auth: 'keys' | 'open'
  readonly timeouts: Timeouts
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** In the file's order: the first match wins. */
  readonly routes: readonly Route[]
  readonly models: ReadonlyMap<string, Model>
  /** By name. */
  readonly groups: ReadonlyMap<string, Group>
  readonly keys: readonly Key[]
  /** Limits of every key, figure by figure where it sets none of its own; null = none. */
  readonly limits: Limits | null
  readonly ledger: LedgerConfig | null
  readonly billing: BillingConfig
  /** null = none are sent. */
  readonly alerts: AlertsConfig | null
  readonly log: LogConfig
  readonly telemetry: TelemetryConfig
  /** null = this gateway is one by itself. */
  readonly cluster: ClusterConfig | null
}

/** Where events are sent. */
export interface WebhookConfig {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Signs events; null = they are not signed. */
  readonly secret: string | null
}

export interface AlertsConfig {
  readonly webhook: WebhookConfig | null
  /** Percentages of a key's budget, ascending. */
  readonly budget: readonly number[]
}

export interface TelemetryConfig {
  /** Where Prometheus reads the metrics; null = not at all. */
  readonly prometheus: { readonly listen: Address } | null
  /** null = nothing is sent to a collector. */
  readonly otlp: OtlpConfig | null
  readonly conventions: 'v1.41' | 'latest'
  /** With `{trace_id}`; null = the console has no links to traces. */
  readonly traceUrl: string | null
}

export interface OtlpConfig {
  /** Without a slash at its end; null = as the environment says. */
  readonly endpoint: string | null
  readonly protocol: 'http/protobuf' | 'http/json' | 'grpc'
  readonly headers: Readonly<Record<string, string>>
  readonly traces: boolean
  readonly metrics: boolean
  /** Milliseconds between two pushes of metrics. */
  readonly interval: number
  /** The share of traces that start here, 0 to 1. */
  readonly sample: number
  /** Traces contain prompts and responses. */
  readonly content: boolean
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface LogConfig {
  readonly level: LogLevel
  /** Whose bodies are kept; the first rule that names the key counts. */
  readonly bodies: readonly BodyRule[]
}

export interface BodyRule {
  /** The key's name, or a glob. */
  readonly key: string
  /** Milliseconds. */
  readonly keep: number
  /** Bytes of each body, request and response. */
  readonly limit: number
}

/** `[::1]:8080` is host `::1`, port 8080. An empty host is every interface. Port 0 picks a free one. */
export interface Address {
  readonly host: string
  readonly port: number
  /** The number of an open descriptor that listens already; host and port then say nothing. */
  readonly fd?: number
}

export interface ServerConfig {
  readonly listen: Address
  /** Other processes may listen on the same address, and share what comes (SO_REUSEPORT). */
  readonly reusePort: boolean
  /** Processes that serve; more than one have a supervisor. */
  readonly workers: number
  /** Absolute paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** Bytes of a request body, before and after decompression. */
  readonly bodyLimit: number
  /** Bytes of all request bodies that are held in memory at once. */
  readonly bodyMemory: number
  /** Exchanges in progress at once. */
  readonly maxInFlight: number
  /** Connections of clients at once, on each listener. */
  readonly maxConnections: number
  /** Milliseconds that a client's connection without a request stays open. */
  readonly idle: number
  /** Addresses or CIDR blocks that may set x-forwarded-* and the request id. */
  readonly trustedProxies: readonly string[]
  /** Host names, in lower case, by which an open gateway and the console are served, beside those of loopback. */
  readonly hosts: readonly string[]
  /** Responses name the upstream and the number of attempts. */
  readonly revealUpstream: boolean
  /** Milliseconds that running exchanges may take after SIGTERM, and after drainDelay. */
  readonly drain: number
  /** Milliseconds after SIGTERM in which requests are served, though the status says that the gateway drains. */
  readonly drainDelay: number
}

export interface ConsoleConfig {
  readonly listen: Address
  /** Where browsers reach it, without a path: `https://gateway.example.com`; null = nobody has said. */
  readonly publicUrl: string | null
  readonly users: readonly ConsoleUser[]
  /** null = there is no single sign-on. */
  readonly oidc: OidcConfig | null
}

/** The identity provider that logs users in, and who of them may do what. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  /** null = the client is public. */
  readonly clientSecret: { readonly value: string } | { readonly file: string } | null
  /** Groups, mail addresses, and `*@example.com` for all of a domain. */
  readonly admins: readonly string[]
  readonly viewers: readonly string[]
  /** What is asked for; `openid` is one of them. */
  readonly scopes: readonly string[]
  /** The claim with the groups: its name, or a path such as `realm_access.roles`. */
  readonly groupsClaim: string
}

export interface ConsoleUser {
  readonly name: string
  readonly password: string
  readonly role: 'admin' | 'viewer'
}

/** All in milliseconds. */
export interface Timeouts {
  readonly connect: number
  /** Until the first byte of the response body. */
  readonly firstByte: number
  /** Between bytes, read or write. */
  readonly idle: number
  /** The whole request, streaming included. */
  readonly total: number
}

export interface Upstream {
  readonly name: string
  /** null for the in-process simulator. A path prefix is kept in front. */
  readonly url: URL | null
  /** Replaces `/v1` of the path, without a slash at its end; null = `/v1`. */
  readonly v1: string | null
  readonly simulator: boolean
  /** The cloud whose paths and framing the upstream has; null = it serves the vendor's own API. */
  readonly provider: ProviderConfig | null
  /** The operator's credential; null = the upstream needs none. */
  readonly auth: Auth | null
  /** Lower-case names; set when the client sent none. */
  readonly headers: Readonly<Record<string, string>>
  /** Takes WebSocket upgrades. */
  readonly websocket: boolean
  /** Lower-case name under which the messages protocol's version header goes up. */
  readonly versionHeader: string
  /** `ask` adds stream_options.include_usage to chat streams; `as_is` does not. */
  readonly usage: 'ask' | 'as_is'
  /** The protocols that it takes; a request of another is translated to the first. null = it takes all as they are. */
  readonly speaks: readonly string[] | null
  /** What is known of models, by name. */
  readonly models: ReadonlyMap<string, Model>
  /** Absolute path of a PEM file with extra trusted roots, or null. */
  readonly ca: string | null
  /** Milliseconds after which a connection takes no more requests. */
  readonly connectionAge: number
  /** What its provider allows all requests together; null = it is not limited here. */
  readonly limits: UpstreamLimits | null
  /** The path of its health check, and milliseconds between two of them; null = there are none. */
  readonly health: { readonly path: string; readonly every: number } | null
}

/** They are counted as those of groups are. */
export interface UpstreamLimits {
  /** Of no key and no group. */
  readonly name: string
  readonly isGroup: true
  readonly limits: Limits
}

export type ProviderConfig = AzureConfig | BedrockConfig | VertexConfig

export interface BedrockConfig {
  readonly kind: 'bedrock'
}

export interface AzureConfig {
  readonly kind: 'azure'
  /** `v1`, or a date such as `2025-04-01-preview`. */
  readonly apiVersion: string
}

export interface VertexConfig {
  readonly kind: 'vertex'
  /** The id of the project; null = that of the credentials. */
  readonly project: string | null
  /** `global`, a region such as `us-central1`, or a multi-region: `us` or `eu`. */
  readonly location: string
}

export interface Route {
  /** Place in the file, from 0. */
  readonly index: number
  /** Line in the file, from 1. */
  readonly line: number
  /** The route in one line: `routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)`. */
  readonly text: string
  /** A glob over the path without its query; null = any path. */
  readonly path: string | null
  /** Globs over the model as the client wrote it; null = any model, or none. */
  readonly models: readonly string[] | null
  readonly targets: readonly Target[]
  readonly strategy: 'ordered' | 'weighted' | 'least_busy' | 'fastest'
  /** What requests have in common that go to the same target as long as it is well; null = nothing. */
  readonly affinity: Affinity | null
  /** Attempts after the first, at whatever target. */
  readonly retries: number
  /** Where a request goes that its target refuses for that reason; null = the refusal goes to the client. */
  readonly on: { readonly contextLength: Target | null; readonly contentFilter: Target | null }
  /** What happens to a stream that breaks: it is reported, continued by another target, or held until it is complete. */
  readonly resume: ResumeMode
  /** Milliseconds without a response after which another target is asked too; null = never. */
  readonly hedgeAfter: number | null
  /** What becomes of a request whose target does not speak its protocol. */
  readonly translate: TranslateMode
  /** The defaults, overridden by the route's own. */
  readonly timeouts: Timeouts
}

/** `continue_or_hold` holds the streams that no target could continue. */
export type ResumeMode = 'off' | 'continue' | 'hold' | 'continue_or_hold'

/** `lenient` leaves out what has no counterpart, `strict` refuses such a request, `off` refuses to translate. */
export type TranslateMode = 'lenient' | 'strict' | 'off'

export interface Target {
  readonly upstream: Upstream
  /** The model's name upstream; null keeps the client's. */
  readonly model: string | null
  readonly weight: number
  /** It continues a response whose beginning it gets as the last message. */
  readonly prefill: boolean
}

/** The key that asks, or the value of a header (lower-case name). */
export type Affinity = { readonly by: 'key' } | { readonly by: 'header'; readonly name: string }

export interface LedgerConfig {
  /** Absolute path of the SQLite file. */
  readonly file: string
  /** Milliseconds that rows are kept; null = for ever. */
  readonly keep: number | null
}

export interface BillingConfig {
  /**
   * What a request costs that the client left before any response:
   * `prompt` bills the estimated prompt, `none` nothing.
   */
  readonly abandoned: 'prompt' | 'none'
  /**
   * Output tokens that a request is taken to want that names no bound,
   * when its budget and limits are reserved.
   */
  readonly assumedOutput: number
}
