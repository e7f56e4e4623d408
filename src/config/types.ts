import type { Auth } from './auth-types.ts'
import type { AttributionConfig } from './attribution-types.ts'
import type { CallerIssuer } from './caller-types.ts'
import type { ClusterConfig } from './cluster-types.ts'
import type { Group, Key, Limits } from './key-types.ts'
import type { Model } from './price-types.ts'

/**
 * The configuration for the rest of the gateway: checked, with all defaults and names resolved. load.ts builds it once and
 * freezes it. Durations are in milliseconds, sizes in bytes, prices in USD per million tokens, file paths absolute.
 */

export interface Config {
  readonly file: string
  /** The file's text; for the console, which masks its secrets. */
  readonly text: string
  readonly server: ServerConfig
  readonly console: ConsoleConfig | null
  readonly docs: { readonly listen: Address } | null
  /** `keys` (the default): every request needs one. `open`: only requests from pages of other sites need one. */
  readonly auth: 'keys' | 'open'
  readonly timeouts: Timeouts
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** In the file's order: the first match wins. */
  readonly routes: readonly Route[]
  readonly models: ReadonlyMap<string, Model>
  readonly groups: ReadonlyMap<string, Group>
  readonly keys: readonly Key[]
  readonly callers: readonly CallerIssuer[]
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
  /** Signs events; null = not signed. */
  readonly secret: string | null
}

export interface AlertsConfig {
  readonly webhook: WebhookConfig | null
  /** Percentages of a key's budget, ascending. */
  readonly budget: readonly number[]
}

export interface TelemetryConfig {
  /** null = not served */
  readonly prometheus: { readonly listen: Address } | null
  readonly otlp: OtlpConfig | null
  readonly conventions: 'v1.41' | 'latest'
  /** Contains `{trace_id}`; null = the console has no links to traces. */
  readonly traceUrl: string | null
}

export interface OtlpConfig {
  /** Without a final slash; null = from the environment. */
  readonly endpoint: string | null
  readonly protocol: 'http/protobuf' | 'http/json' | 'grpc'
  readonly headers: Readonly<Record<string, string>>
  readonly traces: boolean
  readonly metrics: boolean
  /** Between two pushes of metrics. */
  readonly interval: number
  /** The share of traces that start here, 0 to 1. */
  readonly sample: number
  /** Traces contain prompts and responses. */
  readonly content: boolean
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface LogConfig {
  readonly level: LogLevel
  /** Whose bodies are kept; the first rule that matches the key applies. */
  readonly bodies: readonly BodyRule[]
}

export interface BodyRule {
  /** The key's name, or a glob. */
  readonly key: string
  readonly keep: number
  /** Of each body, request and response. */
  readonly limit: number
}

/** `[::1]:8080` is host `::1`, port 8080. An empty host means all interfaces. Port 0 picks a free port. */
export interface Address {
  readonly host: string
  readonly port: number
  /** The number of an open descriptor that already listens; host and port are unused then. */
  readonly fd?: number
}

export interface ServerConfig {
  readonly listen: Address
  /** Other processes may listen on the same address and share the connections (SO_REUSEPORT). */
  readonly reusePort: boolean
  /** Processes that serve; above 1 there is a supervisor. */
  readonly workers: number
  /** PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** Of one request body, before and after decompression. */
  readonly bodyLimit: number
  /** Of all request bodies in memory at the same time. */
  readonly bodyMemory: number
  /** Maximum running exchanges. */
  readonly maxInFlight: number
  /** Maximum client connections on each listener. */
  readonly maxConnections: number
  /** Until an idle client connection closes. */
  readonly idle: number
  /** Addresses or CIDR blocks that may set x-forwarded-* and the request id. */
  readonly trustedProxies: readonly string[]
  /** Lower-case host names that an open gateway and the console accept in addition to loopback names. */
  readonly hosts: readonly string[]
  /** Responses name the upstream and the number of attempts. */
  readonly revealUpstream: boolean
  /** For running exchanges, after SIGTERM and drainDelay. */
  readonly drain: number
  /** Until requests are refused after SIGTERM; the status already reports draining. */
  readonly drainDelay: number
}

export interface ConsoleConfig {
  readonly listen: Address
  /** The URL for browsers, without a path: `https://gateway.example.com`; null = not configured. */
  readonly publicUrl: string | null
  readonly users: readonly ConsoleUser[]
  readonly oidc: OidcConfig | null
}

/** The identity provider that logs users in, and the roles of the users. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  /** null = a public client. */
  readonly clientSecret: { readonly value: string } | { readonly file: string } | null
  /** Groups, mail addresses, and `*@example.com` for a whole domain. */
  readonly admins: readonly string[]
  readonly viewers: readonly string[]
  /** Requested scopes; `openid` is one of them. */
  readonly scopes: readonly string[]
  /** The claim with the groups: its name, or a path such as `realm_access.roles`. */
  readonly groupsClaim: string
}

export interface ConsoleUser { readonly name: string, readonly password: string, readonly role: 'admin' | 'viewer' }

/** In milliseconds. */
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
  /** null = the in-process simulator. Its path is put before request paths. */
  readonly url: URL | null
  /** Replaces `/v1` of the path, without a final slash; null = `/v1`. */
  readonly v1: string | null
  readonly simulator: boolean
  /** The cloud provider whose paths and framing the upstream has; null = the vendor's own API. */
  readonly provider: ProviderConfig | null
  /** The operator's credential; null = the upstream needs none. */
  readonly auth: Auth | null
  /** Lower-case names; set if the client sent none. */
  readonly headers: Readonly<Record<string, string>>
  /** Accepts WebSocket upgrades. */
  readonly websocket: boolean
  /** Lower-case name under which the messages protocol's version header is sent. */
  readonly versionHeader: string
  /** `ask` adds stream_options.include_usage to chat streams; `as_is` does not. */
  readonly usage: 'ask' | 'as_is'
  /** Accepted protocols; other requests are translated to the first one. null = all, untranslated. */
  readonly speaks: readonly string[] | null
  readonly models: ReadonlyMap<string, Model>
  /** PEM file with extra trusted roots, or null. */
  readonly ca: string | null
  /** Age at which a connection takes no more requests. */
  readonly connectionAge: number
  /** What its provider allows for all requests together; null = unlimited here. */
  readonly limits: UpstreamLimits | null
  /** The path of its health check, and the interval; null = no health check. */
  readonly health: { readonly path: string; readonly every: number } | null
}

/** Counted like the limits of a group. */
export interface UpstreamLimits {
  /** Differs from the names of keys and groups. */
  readonly name: string
  readonly isGroup: true
  readonly limits: Limits
}

export type ProviderConfig = AzureConfig | BedrockConfig | VertexConfig

export interface BedrockConfig { readonly kind: 'bedrock' }

export interface AzureConfig {
  readonly kind: 'azure'
  /** `v1`, or a date such as `2025-04-01-preview`. */
  readonly apiVersion: string
}

export interface VertexConfig {
  readonly kind: 'vertex'
  /** null = the project of the credentials */
  readonly project: string | null
  /** `global`, a region such as `us-central1`, or a multi-region: `us` or `eu`. */
  readonly location: string
}

export interface Route {
  readonly index: number
  readonly line: number
  /** `routes[2], line 41: path /v1/*, model gpt-* -> openai (ordered)`. */
  readonly text: string
  /** A glob over the path without its query; null = any path. */
  readonly path: string | null
  /** Globs over the client's model name; null = any model, or none. */
  readonly models: readonly string[] | null
  readonly targets: readonly Target[]
  readonly strategy: 'ordered' | 'weighted' | 'least_busy' | 'fastest'
  /** Requests with the same key, or the same value of a header, go to the same target while it is healthy; null = no affinity. */
  readonly affinity: Affinity | null
  /** Attempts after the first one, at any target. */
  readonly retries: number
  /** The target for requests that are refused for this reason; null = the client gets the refusal. */
  readonly on: { readonly contextLength: Target | null; readonly contentFilter: Target | null }
  /** A stream that breaks is reported, continued by another target, or held until it is complete. */
  readonly resume: ResumeMode
  /** Time without a response after which another target is tried too; null = never. */
  readonly hedgeAfter: number | null
  /** For a request whose target does not speak its protocol. */
  readonly translate: TranslateMode
  /** The default timeouts, overridden by the route's own. */
  readonly timeouts: Timeouts
}

/** `continue_or_hold` holds streams that no target can continue. */
export type ResumeMode = 'off' | 'continue' | 'hold' | 'continue_or_hold'

/** `lenient` drops fields without a counterpart, `strict` refuses such a request, `off` refuses to translate. */
export type TranslateMode = 'lenient' | 'strict' | 'off'

export interface Target {
  readonly upstream: Upstream
  /** The model's name upstream; null = the client's name. */
  readonly model: string | null
  readonly weight: number
  /** Can continue a response whose beginning it gets as the last message. */
  readonly prefill: boolean
}

/** The client's key, or the value of a header (lower-case name). */
export type Affinity = { readonly by: 'key' } | { readonly by: 'header'; readonly name: string }

export interface LedgerConfig {
  /** SQLite file. */
  readonly file: string
  /** How long rows are kept; null = without limit. */
  readonly keep: number | null
}

export interface BillingConfig {
  /** If the client disconnects before any response: `prompt` bills the estimated prompt, `none` bills nothing. */
  readonly abandoned: 'prompt' | 'none'
  /** Output tokens that are reserved for a request without an output bound. */
  readonly assumedOutput: number
}
