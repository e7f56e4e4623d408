import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/*
 * An Azure path names a deployment, and the body may name another model: a key must not reach a model by one
 * of the two names that it may not use by the other. Without a route for Azure paths, the upstream gets the
 * OpenAI path; with such a route it gets the Azure path.
 */

const LIMITED = 'sk-limited-0123456789abcdef'
const ANY = 'sk-any-0123456789abcdef'
let seen: string[] = []
const upstream = await startUpstream(t, async (req, res) => {
  seen.push(`${req.url} ${await bodyOf(req)}`)
  res.setHeader('content-type', 'application/json').end('{}')
})
const KEYS = `
keys:
  - { name: limited, key: ${LIMITED}, models: [may, fast] }
  - { name: any, key: ${ANY} }
`
const ROUTES = `
  - { model: [fast, org/name], to: { upstream: up, model: real } }
  - { to: up }`
const start = (more: string) => startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}", websocket: true } }
routes: ${more}${ROUTES}
${KEYS}`)
const usual = await start('')
const named = await start('\n  - { path: "/openai*", model: never, to: up }')
const EACH = [['without a route for Azure paths', usual], ['with a route for Azure paths', named]] as const

async function ask(
  gateway: typeof usual, path: string, body: string | FormData = '{}', key = LIMITED, headers: object = {},
) {
  seen = []
  const json = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
  const answer = await fetch(gateway.url + path, {
    method: 'POST', headers: { 'api-key': key, ...json, ...headers }, body,
  })
  return { status: answer.status, text: await answer.text() }
}

for (const [name, gateway] of EACH) {
  t.test(`${name}: the deployment in the path must be allowed, in any spelling and whatever model the body names`, async t => {
    for (const path of [
      '/openai/deployments/no/chat/completions?api-version=1',
      '/OpenAI/Deployments/no/Chat/Completions/',
      '//openai//deployments//no/chat/completions',
      '/op%65nai/deployments/%6Eo/chat/completions',
      '/openai/deployments/no/chat/completions;x=1',
      '/openai/deployments/no%3Bmay/chat/completions',
      '/openai/deployments/no/may/chat/completions',
      '/openai/deployments/no%2Fmay/chat/completions',
      '/openai/v1/deployments/no/chat/completions',
      '/v1/deployments/no/chat/completions',
      '/openai/deployments/no/embeddings',
      '/openai/deployments/no/images/generations',
      '/openai/deployments/no/responses',
      '/openai/deployments/no/extensions/chat/completions',
      '/openai/deployments/no/unheardOf',
      '/openai/deployments/no',
      '/v1/engines/no/chat/completions',
      '/openai/engines/no/completions',
    ]) {
      const { status, text } = await ask(gateway, path, '{"model":"may"}')
      t.equal(status, 403, path)
      t.match(text, /may not use the model 'no/)
      t.strictSame(seen, [])
    }
  })

  t.test(`${name}: a key limited to some models can send neither batches nor requests without a model`, async t => {
    for (const path of [
      '/openai/files', '/openai/v1/fine_tuning/jobs', '/openai/responses', '/openai/batches',
    ]) {
      const { status } = await ask(gateway, path, path.endsWith('batches') ? '{"model":"may"}' : '{}')
      t.equal(status, 403, path)
      t.equal((await ask(gateway, path, '{}', ANY)).status, 200, path)
    }
    for (const path of [
      '/openai/deployments/may/batches', '/openai/v1/Deployments/may/Batches/',
      '/openai/deployments/may/batches/1/cancel',
    ]) {
      t.equal((await ask(gateway, path, '{"model":"may"}')).status, 403, path)
      t.equal((await ask(gateway, path, '{}', ANY)).status, 200, path)
    }
  })

  t.test(`${name}: paths with escaped slashes or parameters are refused, because servers read such paths differently`, async t => {
    for (const path of [
      '/openai%2Fdeployments/may/chat/completions', '/openai/deployments%2Fno/chat/completions',
      '/openai/deployments/may/chat%2Fcompletions',
      '/openai;x/deployments/may/chat/completions', '/openai/deployments;x/no/chat/completions',
      '/openai/v1;x/chat/completions', '/openai/deployments/may/chat;x/completions',
      '/openai/deployments/may;no/chat/completions',
    ]) {
      t.equal((await ask(gateway, path, '{"model":"may"}', ANY)).status, 400, path)
      t.strictSame(seen, [])
    }
  })

  t.test(`${name}: a second model in the query or the body is refused`, async t => {
    const path = '/openai/deployments/may/chat/completions?api-version=1'
    for (const [query, body, status] of [
      ['&model=no', '{}', 400],
      ['&deployment=no', '{}', 400],
      ['&Model=no', '{}', 400],
      ['&Deployment=no', '{}', 400],
      ['', '{"model":"may","Model":"no"}', 400],
      ['', '{"model":"may","models":["no"]}', 403],
      ['', '{"fallbacks":["no"]}', 403],
    ] as const) {
      t.equal((await ask(gateway, path + query, body)).status, status, query + body)
      t.strictSame(seen, [])
    }
  })
}

t.test('without a route for Azure paths, the model is moved from the path to the body', async t => {
  const path = '/openai/deployments/may/chat/completions'
  for (const [from, to] of [
    ['{}', '{"model":"may"}'],
    ['{"n":1}', '{"model":"may","n":1}'],
    ['{"model":"no","n":1}', '{"model":"may","n":1}'],
    ['{"n":1,"model":""}', '{"n":1,"model":"may"}'],
    ['{ "model" : "may" }', '{ "model" : "may" }'],
  ] as const) {
    t.equal((await ask(usual, `${path}?api-version=2024-10-21`, from)).status, 200, from)
    t.strictSame(seen, [`/v1/chat/completions ${to}`])
  }
  t.equal((await ask(usual, path.replace('may', 'fast'), '{"model":"may"}')).status, 200)
  t.strictSame(seen, ['/v1/chat/completions {"model":"real"}'])
  const preview = '/OpenAI/v1/chat/completions?a=1&api-version=preview&b'
  t.equal((await ask(usual, preview, '{"model":"may"}')).status, 200)
  t.strictSame(seen, ['/v1/chat/completions?a=1&b {"model":"may"}'])
  t.equal((await ask(usual, '/openai/deployments/org%2Fname/embeddings', '{}', ANY)).status, 200)
  t.strictSame(seen, ['/v1/embeddings {"model":"real"}'])
})

t.test('an escaped slash in a path is accepted in a model name, and gets 400 elsewhere', async t => {
  for (const [path, status] of [
    ['/openai/models/org%2Fname?api-version=1', 200], ['/openai/v1/models/org%2Fname', 200],
    ['/openai/models%2Forg', 400], ['/openai/v1%2Fmodels/org', 400], ['/openai/files/a%2Fb', 400],
  ] as const) {
    const answer = await fetch(usual.url + path, { headers: { 'api-key': ANY } })
    t.equal(answer.status, status, path)
    if (status === 200) t.match(await answer.json(), { id: 'org/name' })
  }
})

t.test('without a route for Azure paths, the model is moved from the path to the form', async t => {
  const path = '/openai/deployments/fast/audio/transcriptions'
  const form = new FormData()
  form.set('file', new Blob(['x']), 'a.wav')
  t.equal((await ask(usual, path, form)).status, 200)
  const [first = ''] = seen
  const [, boundary] = /transcriptions (--\S+)\r\n/.exec(first) ?? []
  const field = `${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nreal\r\n${boundary}\r\n`
  t.ok(first.startsWith(`/v1/audio/transcriptions ${field}`), first)
  t.ok(first.trimEnd().endsWith(`${boundary}--`))
  form.set('model', 'no')
  t.equal((await ask(usual, path, form)).status, 200)
  t.match(seen[0], /name="model"\r\n\r\nreal\r\n/)
  t.notMatch(seen[0], /\r\nno\r\n/)
  form.append('model', 'may')
  t.equal((await ask(usual, path, form)).status, 400, 'two of them')
  const early = `preamble\r\n--b \r\nContent-Disposition: form-data; name="n"\r\n\r\n1\r\n--b--`
  const type = { 'content-type': 'multipart/form-data; boundary=b' }
  t.equal((await ask(usual, path.replace('fast', 'may'), early, LIMITED, type)).status, 200)
  const model = '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nmay\r\n'
  t.strictSame(seen, [`/v1/audio/transcriptions ${early.replace('--b ', `${model}--b `)}`])
})

t.test('with a route for Azure paths, the path is forwarded, and the model in the path replaces the model in the body', async t => {
  const path = '/openai/deployments/may/chat/completions?api-version=2024-10-21'
  for (const [from, to] of [['{"n":1}', '{"n":1}'], ['{"model":"no"}', '{"model":"may"}']] as const) {
    t.equal((await ask(named, path, from)).status, 200, from)
    t.strictSame(seen, [`${path} ${to}`])
  }
  t.equal((await ask(named, path.replace('may', 'fast'), '{"model":"fast"}')).status, 200)
  t.strictSame(seen, [`${path.replace('may', 'real')} {"model":"real"}`])
  t.equal((await ask(named, '/openai/deployments/fast/unheardOf?a', '{"model":"no"}')).status, 200)
  t.strictSame(seen, ['/openai/deployments/real/unheardOf?a {"model":"real"}'])
  const models = await fetch(`${named.url}/openai/models?api-version=1`, { headers: { 'api-key': ANY } })
  t.equal(await models.text(), '{}', 'the list of models comes from the upstream')
})
