import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { gateway } from './command.ts'

const CONFIG = `
upstreams:
  a: { url: "https://a.example", auth: { bearer: operator-secret-0123456789 } }
  b: { url: "https://b.example" }
routes:
  - model: fast
    to: [{ upstream: a, model: x, weight: 3 }, { upstream: b, prefill: true }]
    strategy: weighted
    on: { context_length: b }
    resume: continue
    hedge: { after: 8s }
  - { model: kept, to: [a, b], affinity: "header:X-Session", retries: 0 }
  - { model: single, to: a }
auth: open
`

async function explained(t: Test, model: string): Promise<string> {
  const file = join(t.testdir({ 'gateway.yaml': CONFIG }), 'gateway.yaml')
  const { stdout, code } = await gateway(['explain', '-c', file, '-p', '/v1/chat/completions', '-m', model])
  t.equal(code, 0)
  return stdout
}

t.test('explain shows the order, retries and failovers of a route with several targets, and each target', async t => {
  const text = await explained(t, 'fast')
  t.match(text, 'order     at random, by weight; unhealthy targets last\n')
  t.match(text, 'retries   1 after the first attempt\n')
  t.match(text, 'hedge     another target too when a stream has not begun after 8 s\n')
  t.match(text, 'on        context_length: b\n')
  t.match(text, 'resume    continue\n')
  t.match(text, /target {4}1 of 2, weight 3\nupstream {2}a\n[^]*as model {2}x\n[^]*target {4}2 of 2/)
  t.match(text, /target {4}2 of 2, prefill\nupstream {2}b\n/)
  t.notMatch(text, 'operator-secret')
})

t.test('explain masks a credential in a configured header, and shows other headers', async t => {
  const headers = {
    'api-key': 'operator-secret-1', 'Helicone-Auth': 'Bearer operator-secret-2',
    'cookie': 'a=operator-secret-3; b=c', 'anthropic-version': '2023-06-01',
  }
  const file = join(t.testdir({
    'gateway.yaml': CONFIG.replace('b.example"', `b.example", headers: ${JSON.stringify(headers)}`),
  }), 'gateway.yaml')
  const { stdout } = await gateway(['explain', '-c', file, '-p', '/v1/chat/completions', '-m', 'kept'])
  t.match(stdout, /header {4}api-key: oper…\n/)
  t.match(stdout, /header {4}helicone-auth: Bearer oper…\n/)
  t.match(stdout, /header {4}anthropic-version: 2023-06-01\n/)
  t.notMatch(stdout, 'operator-secret')
})

t.test("a client's own credential is explained", async t => {
  const file = join(t.testdir({ 'gateway.yaml': CONFIG.replace('b.example"', 'b.example", auth: { client: true }') }), 'gateway.yaml')
  const { stdout } = await gateway(['explain', '-c', file, '-p', '/v1/chat/completions', '-m', 'kept'])
  t.match(stdout, /header {4}authorization: <the client's own, in this header or in x-api-key, x-goog-api-key, api-key>\n/)
})

t.test('a route with affinity shows the affinity and no strategy', async t => {
  const text = await explained(t, 'kept')
  t.match(text, 'order     one target for each value of x-session; unhealthy targets last\n')
  t.notMatch(text, 'retries')
})

t.test('explain names a single target without a position', async t => {
  const text = await explained(t, 'single')
  t.notMatch(text, /order|retries|target /)
  t.match(text, 'upstream  a\n')
})

t.test('a WebSocket is routed only to upstreams with websocket: true, and the model in its query is renamed', async t => {
  const file = join(t.testdir({ 'gateway.yaml': `
upstreams:
  plain: { url: "https://plain.example" }
  live: { url: "https://live.example", websocket: true }
routes:
  - { model: fast, to: [plain, { upstream: live, model: x }] }
  - { model: slow, to: plain }
auth: open
` }), 'gateway.yaml')
  const live = await gateway(['explain', '-c', file, '-p', '/v1/realtime?model=fast&voice=a', '-m', 'slow'])
  t.match(live.stdout, 'model     fast\n', 'the model in the query overrides the option')
  t.match(live.stdout, 'url       https://live.example/v1/realtime?model=x&voice=a\nas model  x\n')
  t.notMatch(live.stdout, 'plain.example')
  t.equal(live.code, 0)

  const none = await gateway(['explain', '-c', file, '-p', '/v1/realtime?model=slow'])
  t.match(none.stdout, 'refused   426 upgrade_required: ')
  t.notMatch(none.stdout, 'plain.example')
  t.equal(none.code, 1)

  const named = await gateway(['explain', '-c', file, '-p', '/v1/realtime', '-m', 'fast'])
  t.match(named.stdout, 'url       https://live.example/v1/realtime\nas model  x\n')
})

t.test("the shown URL has the v1 setting of the upstream in place of /v1", async t => {
  const file = join(t.testdir({ 'gateway.yaml': `
upstreams: { a: { url: "https://a.example/eu", v1: /api/v4 } }
routes: [{ to: { upstream: a, model: m } }]
auth: open
` }), 'gateway.yaml')
  const chat = await gateway(['explain', '-c', file, '-p', '/v1/chat/completions?x=1', '-m', 'fast'])
  t.match(chat.stdout, 'url       https://a.example/eu/api/v4/chat/completions?x=1\nas model  m\n')
})

t.test("an Azure path is changed to the OpenAI path, unless a route names the Azure path", async t => {
  const dir = t.testdir({ 'usual.yaml': `
upstreams: { a: { url: "https://a.example" } }
routes: [{ path: /v1/chat/*, model: fast, to: { upstream: a, model: real } }, { path: /v1/*, to: a }]
auth: open
`, 'named.yaml': `
upstreams: { a: { url: "https://a.example" } }
routes: [{ path: "/openai/*", model: fast, to: { upstream: a, model: real } }]
auth: open
` })
  const deployment = '/openai/deployments/fast/chat/completions?api-version=1'
  for (const [file, path, url] of [
    ['usual.yaml', deployment, 'https://a.example/v1/chat/completions'],
    ['usual.yaml', '/openai/v1/files?after=x', 'https://a.example/v1/files?after=x'],
    ['named.yaml', deployment, 'https://a.example/openai/deployments/real/chat/completions?api-version=1'],
  ] as const) {
    const { stdout, code } = await gateway(['explain', '-c', join(dir, file), '-p', path])
    t.equal(code, 0, path)
    t.match(stdout, `url       ${url}\n`)
    if (path === deployment) t.match(stdout, /model     fast\n[^]*as model  real\n/)
  }
})

t.test('explain refuses a second model in path or query, as the gateway does', async t => {
  const file = join(t.testdir({
    'gateway.yaml': 'upstreams: { a: { url: "https://a.example" } }\nroutes: [{ to: a }]\nauth: open\n',
  }), 'gateway.yaml')
  for (const path of ['/openai/deployments/m/embeddings', '/v1/embeddings', '/v1/realtime']) {
    const more = path === '/v1/realtime' ? '&model=m' : ''
    const { stderr, code } = await gateway(['explain', '-c', file, '-p', `${path}?model=n${more}`, '-m', 'm'])
    t.equal(code, 2, path)
    t.match(stderr, "'model' is given more than once")
  }
})

t.test('an empty model is treated as a missing model, as in a request', async t => {
  const file = join(t.testdir({
    'gateway.yaml': 'upstreams: { a: { url: "https://a.example" } }\nroutes: [{ to: a }]\nauth: open\n',
  }), 'gateway.yaml')
  const { stdout, code } = await gateway(['explain', '-c', file, '-p', '/v1/chat/completions', '-m', ''])
  t.equal(code, 1)
  t.match(stdout, 'model     none\n')
  t.match(stdout, 'refused   400 model_required')
})

t.test('explain shows a refusal with the status, code and message that a client gets', async t => {
  const file = join(t.testdir({ 'gateway.yaml': `
upstreams: { a: { url: "https://a.example" } }
routes: [{ path: /v1/chat/*, model: fast, to: a }]
keys: [{ name: team, key: sk-team-0123456789, models: [slow] }]
` }), 'gateway.yaml')
  const refusals: [string[], string][] = [
    [['/v1/files', '-m', 'fast'], '404 unknown_path: no route serves /v1/files\n'],
    [['/v1/chat/completions', '-m', 'x'], "404 model_not_found: the model 'x' does not exist on /v1/"],
    [['/v1/chat/completions', '-m', 'fast', '-k', 'team'], "403 model_not_allowed: the key may not use the"],
    [['/v1/batches', '-k', 'team'], '403 model_not_allowed: the key is limited to some models, and a'],
  ]
  for (const [args, told] of refusals) {
    const { stdout, code } = await gateway(['explain', '-c', file, '-p', ...args])
    t.match(stdout, `refused   ${told}`)
    t.equal(code, 1)
  }
})

t.test('a path outside of the API is refused unless a route names that path', async t => {
  const file = join(t.testdir({ 'gateway.yaml': `
upstreams: { a: { url: "https://a.example" } }
routes: [{ path: /health*, to: a }, { to: a }]
auth: open
` }), 'gateway.yaml')
  const other = await gateway(['explain', '-c', file, '-p', '/other', '-m', 'x'])
  t.equal(other.code, 1)
  t.match(other.stdout, 'refused   404 unknown_path: ')
  t.notMatch(other.stdout, 'takes it')
  const named = await gateway(['explain', '-c', file, '-p', '/healthz'])
  t.match(named, { code: 0, stdout: 'url       https://a.example/healthz\n' })
  t.match(await gateway(['explain', '-c', file, '-p', '/v1/other']), { code: 0, stdout: 'routes[1]' })
})

const SPEAKING = `
upstreams:
  claude: { url: "https://claude.example", speaks: [messages] }
  vllm: { url: "https://vllm.example", speaks: [chat] }
  gemini: { url: "https://gemini.example", speaks: [generate] }
routes:
  - { model: fast, to: [{ upstream: claude, model: haiku }, { upstream: vllm, model: qwen }, { upstream: gemini, model: flash }] }
  - { model: exact, to: vllm, translate: strict }
  - { model: plain, to: vllm, translate: off }
auth: open
`

t.test('for a target with another protocol, explain shows the URL, the translation and the lost fields', async t => {
  const file = join(t.testdir({ 'gateway.yaml': SPEAKING }), 'gateway.yaml')
  const explain = (...more: string[]) => gateway(['explain', '-c', file, '-p', '/v1/messages', ...more])
  const { stdout } = await explain('-m', 'fast')
  t.match(stdout, /upstream {2}claude\nurl {7}https:\/\/claude\.example\/v1\/messages\nas model {2}haiku\nheader/)
  t.match(stdout, /upstream {2}vllm\nurl {7}https:\/\/vllm\.example\/v1\/chat\/completions\nas model {2}qwen\ntranslated from messages to chat\n/)
  t.match(stdout, /dropped {3}top_k, .*\nrefuses {3}container, mcp_servers, thread\n/)
  t.match(stdout, 'url       https://gemini.example/v1beta/models/flash:generateContent\n')
  const strict = await explain('-m', 'exact')
  t.notMatch(strict.stdout, 'dropped')
  t.match(strict.stdout, /refuses {3}top_k, .*container/)
  const counted = await gateway(['explain', '-c', file, '-p', '/v1/messages/count_tokens', '-m', 'fast'])
  t.match(counted.stdout, 'upstream  vllm\nresponse  from the gateway itself, which counts the tokens\n')
  t.equal(counted.code, 0)
  const off = await explain('-m', 'plain')
  t.match(off.stdout, 'refused   400 not_translatable: the target speaks chat')
  t.equal(off.code, 1)
})

t.test('with --body, explain shows the fields that the given request loses', async t => {
  const dir = t.testdir({
    'gateway.yaml': SPEAKING,
    'lossy.json': JSON.stringify({ model: 'fast', max_tokens: 9, top_k: 3, messages: [{ role: 'user', content: 'Hi' }] }),
    'strict.json': JSON.stringify({ model: 'exact', max_tokens: 9, top_k: 3, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  const explain = (body: string) => gateway(['explain', '-c', join(dir, 'gateway.yaml'), '-p', '/v1/messages', '--body', join(dir, body)])
  const { stdout, code } = await explain('lossy.json')
  t.match(stdout, /as model {2}qwen\ntranslated from messages to chat\naccepts {3}max_tokens max_tokens; system first; .*\(Chat servers\)\ndropped {3}top_k\nheader/)
  t.match(stdout, /as model {2}flash\ntranslated from messages to generate\naccepts {3}tool_name .*\(Gemini\)\nheader/)
  t.equal(code, 0)
  const strict = await explain('strict.json')
  t.match(strict.stdout, /refused {3}400 translation_lossy: .*top_k/)
  t.equal(strict.code, 1)
  t.match(await explain('missing.json'), { code: 2, stderr: /missing\.json/ })
})

t.test('explain shows the rules for a model and the setting that the rules come from', async t => {
  const file = join(t.testdir({ 'gateway.yaml': SPEAKING.replace('auth: open', 'auth: open\nmodels: { qwen: { accepts: { temperature: { max: 1 }, stop: true, efforts: [] } } }') }), 'gateway.yaml')
  const { stdout } = await gateway(['explain', '-c', file, '-p', '/v1/messages', '-m', 'fast'])
  t.match(stdout, 'accepts   temperature max 1; stop yes; efforts none (models.qwen.accepts)\n')
})

t.test('explain shows the beta features that a cloud supports, even if no translation is needed', async t => {
  const file = join(t.testdir({
    'gateway.yaml': `
auth: open
upstreams: { aws: { bedrock: { region: us-east-1 }, speaks: [messages], auth: { aws: {} } } }
routes: [{ to: aws }]
`,
  }), 'gateway.yaml')
  const { stdout } = await gateway(['explain', '-c', file, '-p', '/v1/messages', '-m', 'us.anthropic.claude-opus-4-6-v1'])
  t.match(stdout, /accepts {3}betas compact-2026-01-12, .* \(Claude at Amazon Bedrock\)\n/)
})
