import type { OptionalField } from '../protocols/neutral/accepts.ts'
import type { ResumeMode, TranslateMode } from './types.ts'

/**
 * The file's values after the schema check: the types are right, but wrong values are left out, so any value may be
 * missing.
 */
export interface RawConfig {
  server?: {
    listen?: string | number
    reuse_port?: boolean
    reveal_upstream?: boolean
    workers?: number | 'auto'
    body_memory?: string | number
    max_in_flight?: number
    max_connections?: number
    idle?: string
    tls?: { cert?: string, key?: string }
    body_limit?: string | number
    hosts?: (string | undefined)[]
    trusted_proxies?: (string | undefined)[]
    drain?: string
    drain_delay?: string
  }
  console?: { listen?: string | number, public_url?: string, users?: (RawUser | undefined)[], oidc?: RawOidc }
  docs?: { listen?: string | number }
  auth?: 'keys' | 'open'
  timeouts?: RawTimeouts
  upstreams?: Record<string, RawUpstream | undefined>
  routes?: (RawRoute | undefined)[]
  models?: Record<string, RawModel | undefined>
  groups?: Record<string, RawGroup | undefined>
  keys?: (RawKey | undefined)[]
  limits?: RawLimits
  ledger?: { file?: string, keep?: string }
  billing?: { abandoned?: 'prompt' | 'none'; assumed_output?: number }
  alerts?: { webhook?: { url?: string, headers?: Record<string, string | undefined>, secret?: string }, budget?: (number | undefined)[] }
  log?: {
    level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
    bodies?: (RawBodyRule | undefined)[]
  }
  telemetry?: RawTelemetry
  cluster?: RawCluster
}

export interface RawTelemetry {
  prometheus?: { listen?: string | number }
  otlp?: {
    endpoint?: string
    protocol?: 'http/protobuf' | 'http/json' | 'grpc'
    headers?: Record<string, string | undefined>
    traces?: boolean
    metrics?: boolean
    interval?: string
    sample?: number
    content?: boolean
  }
  conventions?: 'v1.41' | 'latest'
  trace_url?: string
}

export interface RawBodyRule {
  key?: string
  keep?: string
  limit?: string | number
}

export interface RawUser {
  name?: string
  password?: string
  role?: 'admin' | 'viewer'
}

export interface RawOidc {
  issuer?: string
  client_id?: string
  client_secret?: string | { file?: string }
  admins?: (string | undefined)[]
  viewers?: (string | undefined)[]
  scopes?: (string | undefined)[]
  groups_claim?: string
}

export interface RawTimeouts {
  connect?: string
  first_byte?: string
  idle?: string
  total?: string
}

export interface RawAuth {
  bearer?: RawSecret
  header?: string
  value?: RawSecret
  oauth2?: { token_url?: string, client_id?: string, client_secret?: string, scope?: string }
  azure?: { tenant?: string, client_id?: string, client_secret?: string, authority?: string }
  aws?: { profile?: string, role_arn?: string }
  google?: { credentials?: string }
  pool?: (Omit<RawAuth, 'pool'> | undefined)[]
}

export type RawSecret = string | { file?: string, command?: (string | undefined)[], every?: string }

export interface RawUpstream {
  url?: string
  azure?: { endpoint?: string, api_version?: string }
  bedrock?: { region?: string, endpoint?: string }
  vertex?: { project?: string, location?: string, endpoint?: string }
  v1?: string
  simulator?: boolean
  auth?: RawAuth
  headers?: Record<string, string | undefined>
  websocket?: boolean
  version_header?: string
  usage?: 'ask' | 'as_is'
  speaks?: (string | undefined)[]
  ca?: string
  limits?: Pick<RawLimits, 'requests_per_minute' | 'tokens_per_minute' | 'concurrent'>
  connection_age?: string
  health?: { path?: string, every?: string }
}

export interface RawTarget {
  upstream?: string
  model?: string
  weight?: number
  prefill?: boolean
}

export interface RawRoute {
  path?: string
  model?: string | (string | undefined)[]
  to?: string | RawTarget | (string | RawTarget | undefined)[]
  strategy?: 'ordered' | 'weighted' | 'least_busy' | 'fastest'
  affinity?: string
  retries?: number
  on?: { context_length?: string | RawTarget, content_filter?: string | RawTarget }
  resume?: ResumeMode
  hedge?: { after?: string }
  translate?: TranslateMode
  timeouts?: RawTimeouts
}

export interface RawModel {
  base_model?: string
  accepts?: RawAccepts
  price?: RawPrice
}

export interface RawAccepts {
  temperature?: RawNumberRule
  top_p?: RawNumberRule
  top_k?: RawNumberRule
  presence_penalty?: RawNumberRule
  frequency_penalty?: RawNumberRule
  stop?: boolean
  efforts?: (string | undefined)[]
  system?: 'first' | 'anywhere'
  max_tokens?: 'max_tokens' | 'max_completion_tokens'
  betas?: (string | undefined)[]
  without?: (OptionalField | undefined)[]
  tool_name?: { length?: number, pattern?: string }
}

export type RawNumberRule = boolean | { only?: (number | undefined)[], min?: number, max?: number }

export interface RawPrice {
  input?: number
  cached_input?: number
  cache_write?: number | { '5m'?: number, '1h'?: number }
  output?: number
  reasoning?: number
  input_audio?: number
  output_audio?: number
  input_image?: number
  output_image?: number
  per_request?: number
  per_second?: number
  per_character?: number
  per_image?: number
  tiers?: ((Omit<RawPrice, 'tiers' | 'service_tiers'> & { above?: number }) | undefined)[]
  service_tiers?: Record<string, Omit<RawPrice, 'service_tiers'> | undefined>
}

export interface RawGroup {
  parent?: string
  models?: string | (string | undefined)[]
  limits?: Omit<RawLimits, 'models'>
}

export interface RawKey {
  name?: string
  key?: string
  sha256?: string
  group?: string
  owner?: string
  note?: string
  expires?: string
  models?: string | (string | undefined)[]
  limits?: RawLimits
}

export interface RawLimits {
  requests_per_minute?: number
  tokens_per_minute?: number
  concurrent?: number
  budget?: { usd?: number, per?: 'day' | 'month' | 'total' }
  models?: Record<string, Omit<RawLimits, 'models'> | undefined>
}

export interface RawCluster {
  valkey?: RawValkey
  valkey_tls?: { ca?: string, cert?: string, key?: string }
  postgres?: string
  instance?: string
  limits_offline?: 'share' | 'refuse'
  valkey_timeout?: string
}

export type RawValkey = string | { sentinels: string[], master: string, sentinel_password?: string } | { cluster: string[] }
