// Generated from gateway.schema.json by npm run docs:generate. Do not edit.

/**
 * The file's values after the schema check: the types are right, but wrong values are left out, so any value may be
 * missing.
 */
export interface RawConfig {
  server?: {
    listen?: string | number
    reuse_port?: boolean
    tls?: { cert?: string, key?: string }
    body_limit?: string | number
    body_memory?: string | number
    workers?: number | 'auto'
    max_in_flight?: number
    max_connections?: number
    idle?: string
    trusted_proxies?: (string | undefined)[]
    hosts?: (string | undefined)[]
    reveal_upstream?: boolean
    drain?: string
    drain_delay?: string
  }
  console?: {
    listen?: string | number
    public_url?: string
    users?: ({ name?: string, password?: string, role?: 'admin' | 'viewer' } | undefined)[]
    oidc?: {
      issuer?: string
      client_id?: string
      client_secret?: string | { file?: string }
      admins?: (string | undefined)[]
      viewers?: (string | undefined)[]
      callers?: boolean
      scopes?: (string | undefined)[]
      groups_claim?: string
    }
  }
  docs?: { listen?: string | number }
  auth?: 'keys' | 'open'
  timeouts?: RawTimeouts
  proxy?: { url?: string, except?: (string | undefined)[], ca?: string } | boolean
  upstreams?: Record<string, {
    url?: string
    azure?: { endpoint?: string, api_version?: string }
    bedrock?: { region?: string, endpoint?: string }
    vertex?: { project?: string, location?: string, endpoint?: string }
    v1?: string
    simulator?: boolean
    auth?: {
      bearer?: RawSecret
      header?: string
      value?: RawSecret
      oauth2?: RawOauth2
      azure?: RawAzureAuth
      aws?: RawAwsAuth
      google?: RawGoogleAuth
      pool?: ({
        bearer?: RawSecret
        header?: string
        value?: RawSecret
        oauth2?: RawOauth2
        azure?: RawAzureAuth
        aws?: RawAwsAuth
        google?: RawGoogleAuth
      } | undefined)[]
      client?: boolean
    }
    headers?: Record<string, string | undefined>
    websocket?: boolean
    version_header?: string
    usage?: 'ask' | 'as_is'
    speaks?: ('chat' | 'responses' | 'messages' | 'generate' | 'converse' | undefined)[]
    ca?: string
    tls?: { cert?: string, key?: string, passphrase?: string, ca?: string, server_name?: string }
    proxy?: string | boolean
    connection_age?: string
    limits?: { requests_per_minute?: number, tokens_per_minute?: number, concurrent?: number, queue?: RawQueue }
    health?: { path?: string, every?: string }
  } | undefined>
  routes?: ({
    path?: string
    model?: string | (string | undefined)[]
    to?: string | RawTarget | (string | RawTarget | undefined)[]
    strategy?: 'ordered' | 'weighted' | 'least_busy' | 'fastest'
    retries?: number
    affinity?: string
    on?: { context_length?: string | RawTarget, content_filter?: string | RawTarget }
    resume?: 'off' | 'continue' | 'hold' | 'continue_or_hold'
    translate?: 'lenient' | 'strict' | 'off'
    checks?: (string | undefined)[]
    hooks?: (string | undefined)[]
    edit?: RawEdit
    fit?: 'off' | 'check'
    hedge?: { after?: string }
    queue?: RawQueue
    timeouts?: RawTimeouts
  } | undefined)[]
  models?: Record<string, { base_model?: string, context?: number, output?: number, accepts?: RawAccepts, price?: RawPrice } | undefined>
  groups?: Record<string, {
    parent?: string
    models?: string | (string | undefined)[]
    limits?: {
      requests_per_minute?: number
      tokens_per_minute?: number
      concurrent?: number
      budget?: RawBudget
      queue?: RawQueue
      priority?: number
    }
    checks?: (string | undefined)[]
    hooks?: (string | undefined)[]
    edit?: RawEdit
  } | undefined>
  keys?: ({
    name?: string
    key?: string
    sha256?: string
    group?: string
    owner?: string
    tags?: Record<string, string | undefined>
    note?: string
    expires?: string
    models?: string | (string | undefined)[]
    limits?: RawLimits
    checks?: (string | undefined)[]
    hooks?: (string | undefined)[]
    edit?: RawEdit
  } | undefined)[]
  callers?: ({
    name?: string
    issuer?: string
    audience?: string | (string | undefined)[]
    jwks?: string
    jwks_grace?: string
    algorithms?: (string | undefined)[]
    caller?: string
    require?: Record<string, string | (string | undefined)[] | undefined>
    groups?: { claim?: string, map?: Record<string, string | undefined>, default?: string | null }
    limits?: RawLimits
    keys?: number
  } | undefined)[]
  edit?: RawEdit
  checks?: Record<string, {
    find?: 'secrets' | 'email' | 'card' | 'iban' | 'phone' | 'ssn' | 'ip' | ('secrets' | 'email' | 'card' | 'iban' | 'phone' | 'ssn' | 'ip' | undefined)[]
    on?: ('request' | 'response' | undefined)[]
    size?: number
    action?: 'refuse' | 'mask' | 'log'
    all?: boolean
  } | undefined>
  hooks?: Record<string, {
    url?: string
    plain_http?: boolean
    on?: ('request' | 'response' | undefined)[]
    send?: 'metadata' | 'text' | 'body'
    timeout?: string
    when_down?: 'allow' | 'refuse'
    concurrency?: number
    secret?: string
    tap?: boolean
    all?: boolean
    ca?: string
  } | undefined>
  limits?: RawLimits
  attribution?: {
    user?: (string | undefined)[]
    tags?: Record<string, (string | undefined)[] | undefined>
    require?: (string | undefined)[]
    values?: number
  }
  ledger?: { file?: string, keep?: string }
  billing?: { abandoned?: 'prompt' | 'none', assumed_output?: number }
  alerts?: { webhook?: { url?: string, headers?: Record<string, string | undefined>, secret?: string }, budget?: (number | undefined)[] }
  log?: {
    level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
    bodies?: ({ key?: string, keep?: string, limit?: string | number } | undefined)[]
  }
  telemetry?: {
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
  cluster?: {
    valkey?: string | { sentinels?: (string | undefined)[], master?: string, sentinel_password?: string } | { cluster?: (string | undefined)[] }
    valkey_tls?: { ca?: string, cert?: string, key?: string }
    limits_offline?: 'share' | 'refuse'
    valkey_timeout?: string
    postgres?: string
    instance?: string
  }
}

export type RawOauth2 = { token_url?: string, client_id?: string, client_secret?: string, scope?: string }

export type RawAzureAuth = { tenant?: string, client_id?: string, client_secret?: string, authority?: string }

export type RawAwsAuth = { profile?: string, role_arn?: string }

export type RawGoogleAuth = { credentials?: string }

export type RawSecret = string | { file?: string, command?: (string | undefined)[], every?: string }

export type RawEdit = {
  request_headers?: RawHeaderEdit
  response_headers?: RawHeaderEdit
  body?: { set?: RawMemberValues, default?: RawMemberValues, cap?: Record<string, number | undefined>, remove?: (string | undefined)[] }
  system?: { prepend?: string, append?: string }
  cache?: 'auto'
}

export type RawHeaderEdit = { set?: RawHeaderValues, default?: RawHeaderValues, remove?: (string | undefined)[] }

export type RawHeaderValues = Record<string, string | undefined>

export type RawMemberValues = Record<string, unknown | undefined>

export type RawTarget = { upstream?: string, model?: string, weight?: number, prefill?: boolean }

export type RawTimeouts = { connect?: string, first_byte?: string, idle?: string, total?: string }

export type RawCacheWrite = number | { '5m'?: number, '1h'?: number }

export type RawAccepts = {
  temperature?: RawNumberRule
  top_p?: RawNumberRule
  top_k?: RawNumberRule
  presence_penalty?: RawNumberRule
  frequency_penalty?: RawNumberRule
  stop?: boolean
  efforts?: ('none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined)[]
  system?: 'first' | 'anywhere'
  max_tokens?: 'max_tokens' | 'max_completion_tokens'
  betas?: (string | undefined)[]
  without?: ('seed' | 'service_tier' | 'verbosity' | 'user' | 'prompt_cache_key' | 'metadata' | 'parallel_tool_calls' | 'name' | 'json_schema' | 'stream_options' | undefined)[]
  tool_name?: { length?: number, pattern?: string }
}

export type RawNumberRule = boolean | { only?: (number | undefined)[], min?: number, max?: number }

export type RawPrice = {
  input?: number
  cached_input?: number
  cache_write?: RawCacheWrite
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
  tiers?: RawPriceTiers
  service_tiers?: Record<string, RawServicePrice | undefined>
}

export type RawPriceTiers = ({
  above?: number
  input?: number
  cached_input?: number
  cache_write?: RawCacheWrite
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
} | undefined)[]

export type RawServicePrice = Omit<RawPrice, 'service_tiers'>

export type RawBudget = { usd?: number, per?: 'day' | 'month' | 'total' }

export type RawLimits = {
  requests_per_minute?: number
  tokens_per_minute?: number
  concurrent?: number
  budget?: RawBudget
  queue?: RawQueue
  priority?: number
  models?: Record<string, { requests_per_minute?: number, tokens_per_minute?: number, concurrent?: number, budget?: RawBudget, queue?: RawQueue } | undefined>
}

export type RawQueue = { wait?: string, size?: number }
