import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/* Whatever names a model is checked: for keys with a list of models, and for the price under a budget. */

const LIMITED = 'sk-limited-0123456789abcdef'
const GROUP = 'sk-group-0123456789abcdef'
const BUDGET = 'sk-budget-0123456789abcdef'
const ANY = 'sk-any-0123456789abcdef'
let requests = 0
const upstream = await startUpstream(t, async (req, res) => {
  requests++
  await bodyOf(req)
  res.setHeader('content-type', 'application/json').end('{"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1}}')
})
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
groups: { team: { models: ["m*"] } }
keys:
  - { name: limited, key: ${LIMITED}, models: ["m*"] }
  - { name: group, key: ${GROUP}, group: team }
  - { name: budget, key: ${BUDGET}, limits: { budget: { usd: 0.01, per: day } } }
  - { name: any, key: ${ANY} }
models:
  m: { price: { input: 0, output: 1 } }
  m2: { price: { input: 0, output: 1 } }
  costly: { price: { input: 0, output: 100 } }
`)

async function ask(key: string, path: string, body: string, headers = {}) {
  requests = 0
  const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers }, body })
  return { status: response.status, text: await response.text(), requests }
}

const CHAT = ['/v1/chat/completions', '"model":"m","max_tokens":5,"messages":[]'] as const
const RESPONSES = ['/v1/responses', '"model":"m","max_output_tokens":5'] as const
const MESSAGES = ['/v1/messages', '"model":"m","max_tokens":5,"messages":[]'] as const
const GENERATE = ['/v1beta/models/m:generateContent', '"contents":[]'] as const
const image = (model: string) => `{"type":"image_generation","model":"${model}"}`

const PLACES: readonly (readonly [what: string, request: readonly [string, string], member: (model: string) => string])[] = [
  ['a router', GENERATE, model => `"generationConfig":{"maxOutputTokens":5,"routingConfig":{"manualMode":{"modelName":"${model}"}}}`],
  ['a router in snake case', GENERATE, model => `"generation_config":{"max_output_tokens":5,"routing_config":{"manual_mode":{"model_name":"models/${model}"}}}`],
  ['a tool', RESPONSES, model => `"input":"x","tools":[${image(model)}]`],
  ['a tool of a namespace', RESPONSES, model => `"input":"x","tools":[{"type":"namespace","name":"n","tools":[${image(model)}]}]`],
  ['a tool that is added', RESPONSES, model => `"input":[{"type":"additional_tools","tools":[${image(model)}]}]`],
  ['a namespace that is added', RESPONSES, model => `"input":[{"tools":[{"type":"namespace","tools":[${image(model)}]}],"type":"additional_tools"}]`],
  ['a tool that was found', RESPONSES, model => `"input":[{"type":"tool_search_output","tools":[${image(model)}]}]`],
  ['a tool in the content of an item', RESPONSES, model => `"input":[{"content":[{"type":"additional_tools","tools":[${image(model)}]}]}]`],
  ['a server of tools', RESPONSES, model => `"input":"x","tools":[{"type":"mcp","server_label":"s","server":{"model":"${model}"}}]`],
  ['extra_body', CHAT, model => `"extra_body":{"model":"${model}"}`],
  ['extra_body with a list', CHAT, model => `"extra_body":{"extra_body":{"models":["m","${model}"]}}`],
  ['fallbacks', CHAT, model => `"models":["m","${model}"],"route":"fallback"`],
  ['fallbacks in another case', CHAT, model => `"Fallbacks":[{"m":["${model}"]}]`],
  ['an escaped name', CHAT, model => `"e\\u0078tra_body":{"m\\u006fdel":"${model}"}`],
  ['a plugin', CHAT, model => `"plugins":[{"id":"x","options":{"model":"${model}"}}]`],
  ['a draft', CHAT, model => `"speculative":{"draft_model":"${model}"}`],
  ['an advisor', MESSAGES, model => `"tools":[{"type":"advisor","model":"${model}"}]`],
  ['fallbacks of Anthropic', MESSAGES, model => `"fallbacks":[{"model":"${model}"}]`],
  ['a transcription', RESPONSES, model => `"input":"x","audio":{"input":{"transcription":{"model":"${model}"}}}`],
]

for (const [what, [path, own], member] of PLACES) {
  t.test(`a model in ${what} is checked against allow-list and budget`, async t => {
    const body = (model: string) => `{${own},${member(model)}}`
    for (const key of [LIMITED, GROUP]) {
      const refused = await ask(key, path, body('dear'))
      t.equal(refused.status, 403)
      t.match(refused.text, /may not use the model '(?:models\/)?dear'/)
      t.equal(refused.requests, 0)
      t.equal((await ask(key, path, body('m2'))).status, 200)
    }
    const unpriced = await ask(BUDGET, path, body('dear'))
    t.equal(unpriced.status, 403, 'a key with a budget cannot use an unpriced model')
    t.match(unpriced.text, 'No price')
    t.equal((await ask(BUDGET, path, body('m2'))).status, 200)
    t.equal((await ask(ANY, path, body('dear'))).status, 200)
  })
}

t.test('a key with an allow-list or a budget cannot let the upstream choose the model', async t => {
  const body = '{"contents":[],"generationConfig":{"maxOutputTokens":5,"routingConfig":{"autoMode":{"modelRoutingPreference":"BALANCED"}}}}'
  t.equal((await ask(LIMITED, GENERATE[0], body)).status, 403)
  t.equal((await ask(BUDGET, GENERATE[0], body)).status, 403)
  t.equal((await ask(ANY, GENERATE[0], body)).status, 200)
})

t.test('the reservation uses the price of the most expensive model in the request', async t => {
  const [path, own] = CHAT
  t.equal((await ask(BUDGET, path, `{${own.replace('5', '1000')}}`)).status, 200)
  t.equal((await ask(BUDGET, path, `{${own.replace('5', '1000')},"models":["costly"]}`)).status, 429)
})

t.test('models named in queries and headers are checked against the allow-list', async t => {
  const [path, own] = CHAT
  for (const query of ['models=dear', 'model_name=dear', 'Model-Id=dear', 'fallbacks=m,dear']) {
    t.equal((await ask(LIMITED, `${path}?${query}`, `{${own}}`)).status, 403, query)
    t.equal((await ask(LIMITED, `${path}?${query.replace('dear', 'm2')}`, `{${own}}`)).status, 200, query)
    t.equal((await ask(ANY, `${path}?${query}`, `{${own}}`)).status, 200, query)
  }
  for (const header of ['x-model', 'x-vendor-model', 'helicone-model-override', 'x-ms-model-mesh-model-name', 'azureml-model-deployment', 'x-fallbacks']) {
    t.equal((await ask(LIMITED, path, `{${own}}`, { [header]: 'dear' })).status, 403, header)
    t.equal((await ask(LIMITED, path, `{${own}}`, { [header]: 'm2' })).status, 200, header)
    t.equal((await ask(ANY, path, `{${own}}`, { [header]: 'dear' })).status, 200, header)
  }
})

t.test('a "model" member in text, tool arguments, metadata or a schema is not checked', async t => {
  for (const [[path, own], member] of [
    [RESPONSES, '"input":[{"type":"function_call","arguments":"{}","name":"f"},{"type":"message","content":[{"type":"input_text","text":"x","model":"dear"}]}]'],
    [RESPONSES, '"input":"x","metadata":{"model":"dear"}'],
    [RESPONSES, '"input":"x","prompt":{"id":"p","variables":{"model":"dear"}}'],
    [RESPONSES, '"input":"x","tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{},"default":{"model":"dear"}}}]'],
    [MESSAGES, '"tools":[{"name":"f","input_schema":{"examples":[{"model":"dear"}]},"input_examples":[{"model":"dear"}]}]'],
    [MESSAGES, '"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"model":"dear","tools":[{"model":"dear"}]}}]}]'],
    [GENERATE, '"contents":[{"parts":[{"functionCall":{"name":"f","args":{"model":"dear"}}}]}],"labels":{"model":"dear"}'],
    [CHAT, '"response_format":{"type":"json_schema","json_schema":{"schema":{"default":{"model":"dear"}}}}'],
  ] as const) {
    t.equal((await ask(LIMITED, path, `{${own},${member}}`.replace('"messages":[],"messages"', '"messages"'))).status, 200, member)
  }
})
