import { formatPath, type Path, type Source } from './source.ts'

/** A setting of the file that is missing or different in the result. */
export interface Note {
  /** Position in the file: `line:column`. */
  readonly place: string
  readonly setting: string
  readonly text: string
}

const BUDGETS = 'budgets are set for keys (keys[].limits) and for groups (groups.NAME.limits)'
const LIMITS = 'limits are set for keys (keys[].limits) and for upstreams (upstreams.NAME.limits)'
const LIMIT_OR_WEIGHT = `${LIMITS}; between several targets it is their weight`
const AS_IT_IS = 'requests are forwarded as they are'
const DROPPED = 'what a target of another protocol has no counterpart for is dropped, and named in x-gateway-dropped'
const CIRCUIT = 'when a circuit opens, and for how long, cannot be set'
const NO_CALLBACKS = 'there are no callbacks; every request is in the ledger and in the log, and telemetry.otlp sends traces'
const CLUSTER = 'several gateways share limits and the ledger by `cluster`'
const NO_CACHE = "responses are not cached; the providers' prompt caches work as they do without a gateway"
const NO_DATABASE = "LiteLLM's database is not read: make keys anew with `gateway keys create`"
const CLOUD = 'how the gateway gets credentials of a cloud is under auth of the upstream'
const NO_SUCH_SETTING = 'there is no such setting'

/** The notes for settings without an equivalent. A pattern matches the names in the path, without list indexes. The first match is used. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^model_list\.litellm_params\.rpm$/, LIMIT_OR_WEIGHT],
  [/^model_list\.litellm_params\.(tpm|max_parallel_requests)$/, LIMITS],
  [/^model_list\.litellm_params\.(max_budget|budget_duration)$/, BUDGETS],
  [/^model_list\.litellm_params\.(aws_|vertex_|azure_|tenant_id|client_)/, CLOUD],
  [
    /^model_list\.litellm_params\.(max_tokens|temperature|extra_body)/,
    AS_IT_IS,
  ],
  [
    /^model_list\.litellm_params\.(drop_params|additional_drop_params)/,
    DROPPED,
  ],
  [
    /^model_list\.litellm_params\.mock_/,
    'the simulator responds without a provider: upstreams.NAME.simulator',
  ],
  [/^model_list\.model_info/, "it describes the model for LiteLLM's own pages"],
  [/^router_settings\.(allowed_fails|cooldown_time|disable_cooldowns|retry_policy|enable_pre_call)/, CIRCUIT],
  [/^router_settings\.(redis_|cache_)/, CLUSTER],
  [/^litellm_settings\.cache/, NO_CACHE],
  [/^litellm_settings\.(success_callback|failure_callback|callbacks|service_callback)/, NO_CALLBACKS],
  [/^litellm_settings\.drop_params/, DROPPED],
  [/^litellm_settings\.(modify_params|add_function_to_prompt)/, AS_IT_IS],
  [/^litellm_settings\.(max_budget|budget_duration|default_|max_internal)/, BUDGETS],
  [/^litellm_settings\.(set_verbose|json_logs|turn_off_message_logging|redact)/, 'see log.level'],
  [/^general_settings\.(database_|store_model_in_db|use_redis|proxy_batch)/, NO_DATABASE],
  [/^general_settings\.(alert|pagerduty)/, 'alerts go to a webhook: alerts.webhook'],
  [/^general_settings\.(max_parallel_requests|global_max_parallel_requests)/, LIMITS],
  [/^general_settings\..*budget/, BUDGETS],
  [/^environment_variables/, 'set the variables in the environment of the gateway'],
  [/^include/, 'import the files that it names one by one'],
  [/^guardrails/, 'there are no guardrails'],
]

/** One note for each kind of setting that was not taken, even if several entries have the setting. */
export function notesOnUnusedSettings(source: Source): Note[] {
  const kinds = new Map<string, { first: Path, count: number }>()
  for (const path of source.unusedSettings()) {
    const kind = path.filter(part => typeof part === 'string').join('.')
    const known = kinds.get(kind)
    if (known) known.count += 1
    else kinds.set(kind, { first: path, count: 1 })
  }
  return [...kinds].map(([kind, { first, count }]) => ({
    place: source.place(first),
    setting: `${formatPath(first)}${count > 1 ? ` and ${count - 1} more` : ''}`,
    text: REASONS.find(([pattern]) => pattern.test(kind))?.[1] ?? NO_SUCH_SETTING,
  }))
}
