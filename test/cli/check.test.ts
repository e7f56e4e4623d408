import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { GATEWAY, ROOT, gateway } from './command.ts'

const GOOD = `upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
keys: [{ name: team, key: "\${KEY}" }]
`

t.test('for a configuration without problems, check prints a summary', async t => {
  const cwd = t.testdir({ 'gateway.yaml': GOOD })
  t.match(await gateway(['check'], { cwd, env: { KEY: 'a-key-that-is-long-enough' } }), {
    code: 0, stdout: 'gateway.yaml: no problems (1 upstream, 1 route, 1 key)\n', stderr: '',
  })
})

t.test('check prints warnings and exits with 0', async t => {
  const cwd = t.testdir({ 'my.yaml': GOOD })
  const { code, stdout } = await gateway(['check', '-c', 'my.yaml'], { cwd, env: { KEY: 'short' } })
  t.equal(code, 0)
  t.equal(stdout, [
    'my.yaml:3:27: warning: keys of fewer than 16 characters can be guessed; use a long random one',
    '    3 | keys: [{ name: team, key: "${KEY}" }]',
    '      |                           ^',
    '',
    'my.yaml: 1 warning (1 upstream, 1 route, 1 key)',
    '',
  ].join('\n'))
})

const ROUTES_OF_PATHS = `upstreams: { demo: { simulator: true } }
routes:
  - { model: "gpt-*", to: demo }
  - { path: /v1/chat/completions, to: demo }
  - { path: "/v1beta/models/*", to: demo }
  - { path: /v1/rerank, to: demo }
  - { path: /v1/files, to: demo }
`
const BUDGET = 'limits: { budget: { usd: 5, per: day } }'
const HOLDERS = {
  'a key': `keys: [{ name: team, key: "\${KEY}", ${BUDGET} }]`,
  'some models of a key': `keys: [{ name: team, key: "\${KEY}", limits: { models: { m: { budget: { usd: 5, per: day } } } } }]`,
  'a group': `keys: [{ name: team, key: "\${KEY}", group: all }]\ngroups: { all: { ${BUDGET} } }`,
  'every key': `keys: [{ name: team, key: "\${KEY}" }]\n${BUDGET}`,
}
for (const [holder, yaml] of Object.entries(HOLDERS)) {
  t.test(`check warns about routes with paths of unknown cost if there is a budget of ${holder}`, async t => {
    const cwd = t.testdir({ 'gateway.yaml': `${ROUTES_OF_PATHS}${yaml}\n` })
    const { code, stdout } = await gateway(['check'], { cwd, env: { KEY: 'a-key-that-is-long-enough' } })
    t.equal(code, 0)
    const named = [...stdout.matchAll(/^gateway.yaml:(\d+): on (routes\[\d\]), .*budget.* such as POST (\S+)$/gm)]
    t.strictSame(named.map(([, line, route, path]) => `${line} ${route} ${path}`), [
      '3 routes[0] /v1/videos', '5 routes[2] /v1beta/models/m:predict', '6 routes[3] /v1/rerank',
    ])
  })
}

t.test('without a budget check does not warn about paths of unknown cost', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `${ROUTES_OF_PATHS}keys: [{ name: team, key: "\${KEY}" }]\n` })
  const { stdout } = await gateway(['check'], { cwd, env: { KEY: 'a-key-that-is-long-enough' } })
  t.notMatch(stdout, 'budget')
})

t.test('check prints all errors and exits with 2', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `${GOOD}log: { level: loud }\nservr: {}\n` })
  const { code, stdout, stderr } = await gateway(['check', '--config', 'gateway.yaml'], { cwd })
  t.equal(code, 2)
  for (const place of ['3:28: error', '4:15: error', '5:1: error']) t.match(stdout, `gateway.yaml:${place}`)
  t.match(stderr, 'gateway.yaml: 3 errors')
})

t.test('a model without a price is reported once for each upstream that a route sends the model to', async t => {
  const yaml = `upstreams: { openai: { url: https://api.openai.com } }
routes:
  - { model: [gpt-4.1-mini, gpt-none, own], to: openai }
  - { model: gpt-none, path: /v1/chat/*, to: openai }
  - { model: "fast*", to: { upstream: openai, model: nobodys } }
  - { model: one, to: openai }
  - { model: o3, to: openai, on: { context_length: { model: xl, upstream: openai }, content_filter: openai } }
  - { path: /v1/*, to: [openai, { model: two, upstream: openai }] }
models: { own: { price: { input: 1 } } }
auth: open
`
  const cwd = t.testdir({ 'gateway.yaml': yaml })
  const { code, stdout } = await gateway(['check'], { cwd })
  t.equal(code, 0)
  const unpriced = [
    ...stdout.matchAll(/^gateway.yaml:(\d+:\d+): warning: the model "(.*)" at openai has no price/gm),
  ]
  t.strictSame(unpriced.map(([, place, model]) => `${place} ${model}`), [
    '3:29 gpt-none', '5:54 nobodys', '6:14 one', '7:61 xl', '8:42 two',
  ])
})

t.test('a glob that matches no model with a price is reported, and the warning names the most similar model with a price', async t => {
  const yaml = `upstreams:
  openai: { url: https://api.openai.com }
  local: { url: http://127.0.0.1:11434 }
  demo: { simulator: true }
routes:
  - { model: [gpt-4.1-mini, "gpt-*", "house-*", "hause-*"], to: openai }
  - { model: ["*-mine", hause-large], path: /v1/chat/*, to: [local, openai] }
  - { model: "gpt-*", path: /v1/chat/*, to: local }
  - { model: "sim*", to: demo }
  - { model: "house-*", to: { upstream: local, model: house-large } }
  - { path: /v1/*, to: openai }
models: { house-large: { price: { input: 1 } }, unpriced-mine: {} }
auth: open
`
  const cwd = t.testdir({ 'gateway.yaml': yaml })
  const { code, stdout } = await gateway(['check'], { cwd })
  t.equal(code, 0)
  const warnings = [...stdout.matchAll(/^gateway.yaml:(\d+:\d+): warning: (?!no request reaches)(.*)/gm)].map(([, place, message]) => `${place} ${message}`)
  t.match(warnings, [
    '6:49 no known model of "hause-*" has a price at openai: costs are unknown (null), and keys with a budget are refused unpriced models; ' +
      'add the prices under models; the nearest is "house-large"',
    /^7:15 no known model of "\*-mine" has a price at local: .*under models$/,
    /^7:15 no known model of "\*-mine" has a price at openai:/,
    /^7:25 the model "hause-large" at local has no price: .*; the nearest is "house-large"$/,
    /^7:25 the model "hause-large" at openai has no price:/,
  ])
  t.equal(warnings.length, 5)
})

t.test('a missing file is an error', async t => {
  const { code, stdout } = await gateway(['check', '--config', 'nowhere.yaml'], { cwd: t.testdir({}) })
  t.match({ code, stdout }, { code: 2, stdout: /^nowhere\.yaml: error: no such file/ })
})

t.test('the example of the repository has no problems', async t => {
  t.match(await gateway(['check'], { cwd: ROOT }), { code: 0, stdout: /^gateway\.yaml: no problems/ })
})

t.test('the output has colours only if FORCE_COLOR is set', async t => {
  const cwd = t.testdir({ 'gateway.yaml': 'servr: {}\n' })
  t.notMatch((await gateway(['check'], { cwd })).stdout, '\u001b')
  t.match((await gateway(['check'], { cwd, env: { FORCE_COLOR: '1' } })).stdout, '\u001b[1m\u001b[31merror')
})

t.test('check does not fail if the reader of its standard output stops early', async t => {
  const problems = Array.from({ length: 5000 }, (_, at) => `unknown_key_${at}: 1\n`).join('')
  const cwd = t.testdir({ 'gateway.yaml': `${GOOD}auth: open\n${problems}` })
  const child = spawn(process.execPath, [GATEWAY, 'check', '--config', join(cwd, 'gateway.yaml')], {
    env: { KEY: 'a-key-that-is-long-enough' }, stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  child.stderr.setEncoding('utf8')
  let stderr = ''
  child.stderr.on('data', (chunk: string) => {
    stderr += chunk
  })
  await once(child, 'close')
  t.notMatch(stderr, /EPIPE|\n {4}at /)
})

t.test('check --verbose prints the translation and the lost fields once for each upstream and protocol', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `
upstreams:
  claude: { url: "https://claude.example", speaks: [messages] }
  vllm: { url: "https://vllm.example", speaks: [chat, responses, generate] }
routes:
  - { path: "/v1/messages*", model: a, to: [claude, vllm] }
  - { path: "/v1/messages*", model: b, to: vllm }
  - { path: /v1/responses, model: c, to: claude, translate: strict }
  - { path: /v1/chat/completions, model: d, to: claude, translate: off }
auth: open
models: { "*": { price: { input: 1, output: 1 } } }
` })
  const { code, stdout } = await gateway(['check', '--verbose'], { cwd })
  t.equal(code, 0)
  const lines = stdout.split('\n').filter(line => /^(claude|vllm): /.test(line))
  t.equal(lines.length, 3)
  t.match(lines[0], /^vllm: requests of messages are translated to chat, without top_k, .*; refused with container, mcp_servers, thread$/)
  t.match(lines[1], /^claude: requests of responses are translated to messages; refused with .*metadata.*previous_response_id/)
  t.match(lines[2], /^claude: requests of chat are refused, because it speaks messages and the route has translate: off$/)
  const { stdout: short } = await gateway(['check'], { cwd })
  t.strictSame(short.split('\n').filter(line => line.startsWith('routes[')).map(line => line.replace(/^(routes.\d.).*\): /, '$1 ')), [
    'routes[0] translates messages->chat', 'routes[1] translates messages->chat', 'routes[2] translates responses->messages',
    'routes[3] refuses chat->messages',
  ])
  t.match(short, /^The fields that translation drops or refuses: gateway check --verbose$/m)
})

t.test('the line about a translation names the model if the model decides the protocol of the upstream', async t => {
  const cwd = t.testdir({ 'gateway.yaml': `
upstreams: { vertex: { vertex: { project: p, location: us-central1 }, auth: { bearer: 0123456789abcdef } } }
routes: [{ path: /v1/messages, model: [a, b], to: [{ upstream: vertex, model: gemini-3-pro }, { upstream: vertex, model: claude-opus-4-5 }] }]
auth: open
` })
  const { stdout } = await gateway(['check', '--verbose'], { cwd })
  const lines = stdout.split('\n').filter(line => line.startsWith('vertex'))
  t.equal(lines.length, 1)
  t.match(lines[0], /^vertex, gemini-3-pro: requests of messages are translated to generate, without /)
})
