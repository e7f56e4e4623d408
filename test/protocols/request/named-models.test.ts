import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

const LIMITED = 'sk-limited-0123456789'

const heard: string[] = []
const upstream = await startUpstream(t, (req, res) => {
  heard.push(req.url ?? '')
  req.resume()
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
keys:
  - { name: test, key: ${KEY} }
  - { name: limited, key: ${LIMITED}, models: [small, "tiny-*"] }
`)

async function ask(key: string, body: string): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body, headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' },
  })
}

const REFUSED = [
  ["OpenRouter's next models", 'models', '"models":["small","dear"]'],
  ["Anthropic's fallbacks", 'fallbacks', '"fallbacks":[{"model":"tiny-1"},{"max_tokens":1,"model":"dear"}]'],
  ["LiteLLM's fallbacks by model", 'fallbacks', '"fallbacks":[{"small":["tiny-1","dear"]}]'],
  [
    "LiteLLM's with settings of their own", 'fallbacks',
    '"fallbacks":[{"small":[{"max_tokens":1,"fallbacks":[{"*":["dear"]}]}]}]',
  ],
  [
    "LiteLLM's of longer context", 'context_window_fallbacks',
    '"context_window_fallbacks":[{"small":["dear"]}],"mock_testing_context_fallbacks":true',
  ],
  [
    "LiteLLM's of milder filters", 'content_policy_fallbacks',
    '"content_policy_fallbacks":[{"model":"small"},{"small":["dear"]}]',
  ],
  ["Anthropic's advisor", 'tools', '"tools":[{"type":"x","input":{"model":1}},{"type":"advisor","model":"dear"}]'],
  ['a plugin with several models', 'plugins', '"plugins":[{"id":"x","models":["dear"]}]'],
  ['an escaped name', 'tools', '"t\\u006fols":[{"mod\\u0065l":"d\\u0065ar"}]'],
  ['a repeated member', 'tools', '"tools":[],"tools":[{"model":"dear","model":"small"}]'],
] as const

for (const [what, param, member] of REFUSED) {
  t.test(`a key with models cannot name another model in a further field: ${what}`, async t => {
    const answer = await ask(LIMITED, `{"model":"small",${member}}`)
    t.equal(answer.status, 403)
    t.match(await answer.json(), {
      error: { code: 'model_not_allowed', param, message: "the key may not use the model 'dear'" },
    })
    t.equal(heard.length, 0)
  })
}

t.test('allowed models pass, text under the name model passes, and a key without models can name any model', async t => {
  for (const member of [
    '"models":["small","tiny-2"],"fallbacks":[{"model":"tiny-1"}]',
    '"fallbacks":[{"small":["tiny-1"]}],"context_window_fallbacks":[{"small":[]}]',
    '"tools":[{"type":"web_search","allowed_domains":["dear"]}]',
    '"models":"dear","fallbacks":null,"tools":{"model":"dear"}',
    '"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"model":"dear"}}}},1,null]',
    '"messages":[{"models":["dear"],"tools":[{"model":"dear"}]}]',
  ]) {
    t.equal((await ask(LIMITED, `{"model":"small",${member}}`)).status, 200, member)
  }
  for (const [, , member] of REFUSED) {
    t.equal((await ask(KEY, `{"model":"small",${member}}`)).status, 200, member)
  }
})

t.test('a request with too many models is refused with 400, or with 403 if a forbidden model comes first', async t => {
  const many = '"small",'.repeat(130_000)
  const refused = await ask(LIMITED, `{"model":"small","models":[${many}"small"]}`)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { code: 'invalid_json', param: 'models' } })
  t.equal((await ask(LIMITED, `{"model":"small","plugins":[{"models":["dear",${many}"small"]}]}`)).status, 403)
})

t.test('lists of models that are nested too deeply are refused', async t => {
  const deep = `${'[{"small":'.repeat(9000 / 2)}[]${'}]'.repeat(9000 / 2)}`
  const refused = await ask(LIMITED, `{"model":"small","fallbacks":${deep}}`)
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { code: 'invalid_json' } })
})
