/** Where a request can go: a route of the gateway for each. */
export interface Target {
  /** The client's name of the model. */
  readonly model: string
  /** Lines of its route. */
  readonly to: string
}

const translated = (upstream: string, more = ''): Target => ({ model: `${upstream}-model`, to: `{ upstream: ${upstream}, model: up-${upstream} }${more}` })

export const TARGETS: Readonly<Record<string, Target>> = {
  plain: { model: 'plain-model', to: 'plain' },
  renamed: { model: 'renamed-model', to: '{ upstream: plain, model: "up/renamed" }' },
  chat: translated('chat'), responses: translated('responses'), messages: translated('messages'), generate: translated('generate'), converse: translated('converse'),
  bedrock: { model: 'bedrock-model', to: '{ upstream: bedrock, model: "anthropic.claude-v1:0" }' },
  claude: { model: 'claude-model', to: '{ upstream: vertex, model: claude-haiku }' },
  gemini: { model: 'gemini-model', to: '{ upstream: vertex, model: gemini-flash }' },
  azure: translated('azure'), deployment: translated('deployment'),
  strict: { model: 'strict-model', to: '{ upstream: messages, model: up-strict }, translate: strict' },
  continued: { model: 'continued-model', to: '[{ upstream: chat, model: up-a, prefill: true }, { upstream: messages, model: up-b, prefill: true }], retries: 2, resume: continue' },
  held: { model: 'held-model', to: '[{ upstream: generate, model: up-a }, { upstream: plain, model: up-b }], retries: 1, resume: hold' },
  hedged: { model: 'hedged-model', to: '[{ upstream: responses, model: up-a }, { upstream: chat, model: up-b }], retries: 1, hedge: { after: 20ms }' },
}

/** Names of models at their upstreams. */
const PRICED = ['plain-model', 'up/renamed', ...['chat', 'responses', 'messages', 'generate', 'converse', 'azure', 'deployment', 'strict', 'a', 'b'].map(name => `up-${name}`), 'anthropic.claude-v1:0', 'claude-haiku', 'gemini-flash']

/** USD that keys may spend: of the first at will, so that its requests show what is reserved; of the others soon all. */
export const BUDGETS = [1e9, 1, 0.1, 0.02] as const

export const OPEN_KEY = 'sk-fuzz-open-0123456789abcdef'
export const budgetKey = (number: number): string => `sk-fuzz-budget-${number}-0123456789abcdef`
export const ASSUMED_OUTPUT = 500
export const BODY_LIMIT_MB = 48
export const BODY_MEMORY_MB = 96

/** @param url of the upstreams. @param ledger a file */
export function configuration(url: string, ledger: string): string {
  const upstream = (name: string, more: string): string => `  ${name}: { ${more} }`
  const cloud = `auth: { bearer: cloud-credential }`
  return `
server: { listen: "127.0.0.1:0", body_limit: ${BODY_LIMIT_MB}mb, body_memory: ${BODY_MEMORY_MB}mb, reveal_upstream: true }
log: { level: warn }
ledger: { file: "${ledger}" }
timeouts: { first_byte: 2m, idle: 2m, total: 4m }
billing: { assumed_output: ${ASSUMED_OUTPUT} }
upstreams:
${[
    upstream('plain', `url: "${url}", websocket: true`),
    ...['chat', 'responses', 'messages', 'generate'].map(name => upstream(name, `url: "${url}", speaks: [${name}]`)),
    upstream('converse', `bedrock: { region: us-east-1, endpoint: "${url}" }, auth: { aws: {} }, speaks: [converse]`),
    upstream('bedrock', `bedrock: { region: us-east-1, endpoint: "${url}" }, auth: { aws: {} }`),
    upstream('vertex', `vertex: { project: p, location: us-central1, endpoint: "${url}" }, ${cloud}`),
    upstream('azure', `azure: { endpoint: "${url}" }, ${cloud}`),
    upstream('deployment', `azure: { endpoint: "${url}", api_version: "2025-04-01-preview" }, ${cloud}`),
  ].join('\n')}
routes:
${Object.values(TARGETS).map(({ model, to }) => `  - { model: "${model}", to: ${to} }`).join('\n')}
  - { path: /v1/batches, to: plain }
  - { path: /v1/messages/batches, to: plain }
models:
${PRICED.map(name => `  "${name}": { price: { input: 2, output: 10, cached_input: 1, cache_write: 3 } }`).join('\n')}
keys:
  - { name: open, key: ${OPEN_KEY} }
${BUDGETS.map((usd, number) => `  - { name: budget-${number}, key: ${budgetKey(number)}, limits: { budget: { usd: ${usd}, per: total } } }`).join('\n')}
`
}
