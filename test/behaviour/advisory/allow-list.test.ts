import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { bodyOf, rawRequest, startUpstream } from '../../support/upstream.ts'

/*
 * Requests by which a key could reach a model that the key may not use, because the gateway
 * reads one model and the upstream another.
 */

const LIMITED = 'sk-limited-0123456789abcdef'
const GLOB = 'sk-glob-0123456789abcdef'
const COMMA = 'sk-comma-0123456789abcdef'
const ANY = 'sk-any-0123456789abcdef'
let seen: string[] = []
const upstream = await startUpstream(t, async (req, res) => {
  seen.push(`${req.url} ${await bodyOf(req)}`)
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `
upstreams:
  up: { url: "${upstream.url}", websocket: true }
  demo: { simulator: true }
routes:
  - { model: [fast, "may-not*"], to: { upstream: up, model: real } }
  - { model: "may-sim*", to: demo }
  - { to: up }
  - { path: /ws/*, to: up }
keys:
  - { name: limited, key: ${LIMITED}, models: [may, fast] }
  - { name: glob, key: ${GLOB}, models: ["may*"] }
  - { name: comma, key: ${COMMA}, models: ["no,such", "sim,*"] }
  - { name: any, key: ${ANY} }
`)

async function ask(path: string, body: string, key = LIMITED, contentType = 'application/json') {
  seen = []
  const headers = { 'x-api-key': key, 'content-type': contentType }
  const answer = await fetch(gateway.url + path, { method: 'POST', headers, body })
  return { status: answer.status, text: await answer.text() }
}

t.test('on a path with an unknown verb, the model in the path must be allowed, whatever model the body names', async t => {
  for (const verb of ['predict', 'predictLongRunning', 'batchGenerateContent', 'Predict', 'predict/']) {
    const { status, text } = await ask(`/v1beta/models/no:${verb}`, '{"model":"may","instances":[]}')
    t.equal(status, 403, verb)
    t.match(text, /MODEL_NOT_ALLOWED/)
    t.strictSame(seen, [])
  }
  t.equal((await ask('/v1beta/models/may:predict', '{"instances":[]}')).status, 200)
  t.equal((await ask('/v1beta/models/fast:predict', '{"instances":[]}')).status, 200)
  t.strictSame(seen, ['/v1beta/models/real:predict {"instances":[]}'])
  t.equal((await ask('/v1beta/models/no:predict', '{"instances":[]}', ANY)).status, 200)
})

t.test('on a path of Vertex AI in any spelling, the model in the path must be allowed, whatever model the body names', async t => {
  const project = '/v1beta1/projects/p/locations/l'
  for (const path of [
    '/v1beta1/publishers/google/models/no:generateContent',
    '/V1BETA1/Publishers/Google/Models/no:GENERATECONTENT',
    '/v1beta1//publishers/google//models/no:generateContent/',
    '/v1beta1/publishers/google/models/no%3AgenerateContent;x=1',
    '/%76%31beta1/publ%69shers/google/models/%6Eo:generateContent',
    '/v1beta1/publishers/google/models/no;may:generateContent',
    `${project}/publishers/google/models/no:streamGenerateContent`,
    `${project}/publishers/google/models/no:unheardOf`,
    `${project}/publishers/anthropic/models/no:rawPredict`,
    `${project}/endpoints/no:generateContent`,
    `${project}/endpoints/no%3aunheardOf`,
    `${project}/endpoints/no/chat/completions`,
    `${project}/ENDPOINTS/no/Chat/Completions/`,
    `${project}/endpoints/no/invoke/v1/chat/completions`,
    `${project}/endpoints/no/models/may:predict`,
    '/v1beta1/models/no:generateContent',
  ]) {
    const { status, text } = await ask(path, '{"model":"may"}')
    t.equal(status, 403, path)
    t.match(text, /may not use the model 'no/)
    t.strictSame(seen, [])
  }
  t.equal((await ask(`${project}/endpoints/openapi/chat/completions`, '{"model":"no"}')).status, 403)
  t.equal((await ask(`${project}/batchPredictionJobs`, '{"model":"publishers/google/models/no"}')).status, 403)
  t.equal((await ask(`${project}/endpoints/fast:predict`, '{"instances":[]}')).status, 200)
  t.strictSame(seen, [`${project}/endpoints/real:predict {"instances":[]}`])
  const named = `{"model":"${project.slice('/v1beta1/'.length)}/endpoints/may"}`
  t.equal((await ask(`${project}/endpoints/may:generateContent`, named)).status, 200)
  t.equal((await ask(`${project}/endpoints/fast/chat/completions`, '{"model":""}')).status, 200)
  t.strictSame(seen, [`${project}/endpoints/real/chat/completions {"model":""}`])
})

t.test('a body with a second "model" in another spelling is refused, because servers in Go ignore case', async t => {
  for (const body of [
    '{"model":"may","Model":"no"}', '{"MODEL":"no","model":"may"}', '{"model":"may","mo\\u0044el":"no"}',
  ]) {
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/other']) {
      const { status, text } = await ask(path, body)
      t.equal(status, 400, `${path} ${body}`)
      t.match(text, /more than once/)
    }
  }
  t.strictSame(seen, [])
  t.equal((await ask('/v1/chat/completions', '{"Model":"no"}')).status, 403)
  t.equal((await ask('/v1/chat/completions', '{"model":"fast","Model":"fast","models":["may"]}')).status, 200)
  t.strictSame(seen, ['/v1/chat/completions {"model":"real","Model":"real","models":["may"]}'])
})

t.test('a body with an empty and a non-empty "model" is refused, because some parsers read the first and some the last', async t => {
  for (const key of [LIMITED, ANY]) {
    for (const body of ['{"model":"","model":"no"}', '{"model":"no","model":""}']) {
      const { status, text } = await ask('/v1/responses', body, key)
      t.equal(status, 400, body)
      t.match(text, /more than once/)
    }
  }
  t.strictSame(seen, [])
})

t.test('a body with a second "model" of any type is refused, because some parsers read the first and some the last', async t => {
  for (const key of [LIMITED, GLOB, ANY]) {
    for (const value of ['null', '"no"', '1', 'true', '["no"]', '{"id":"no"}']) {
      for (const body of [`{"model":"may","model":${value}}`, `{"model":${value},"Model":"may"}`]) {
        for (const path of ['/v1/chat/completions', '/v1/other', '/v1beta/models/may:predict']) {
          const { status, text } = await ask(path, body, key)
          t.equal(status, 400, `${path} ${body}`)
          t.match(text, /'model'/)
        }
      }
    }
  }
  t.strictSame(seen, [])
  t.equal((await ask('/v1beta/interactions', '{"model":null,"agent":"may"}')).status, 200)
  t.equal((await ask('/v1beta/interactions', '{"agent":"may","agent":null}')).status, 400)
})

t.test('a key must be allowed every model of a comma-separated list, because LiteLLM splits the list', async t => {
  for (const model of ['may,no', 'may-1, no', 'may,', 'may,,may']) {
    const body = JSON.stringify({ model, fastest_response: true })
    const { status } = await ask('/v1/chat/completions', body, GLOB)
    t.equal(status, 403, model)
    t.strictSame(seen, [])
  }
  t.equal((await ask('/v1/chat/completions', '{"model":"may-1, may-2"}', GLOB)).status, 200)
  t.equal((await ask('/v1/chat/completions', '{"model":"may-not, no"}', GLOB)).status, 200)
  t.strictSame(seen, ['/v1/chat/completions {"model":"real"}'], 'the upstream gets the model of the route instead of the list')
  const simulated = await ask('/v1/chat/completions', '{"model":"may-sim,tokens=2","messages":[]}', GLOB)
  t.equal(simulated.status, 200, 'the simulator reads behaviours after a comma')
  t.equal((await ask('/v1/chat/completions', '{"model":"may,no"}', ANY)).status, 200)
})

t.test('a model name with a comma is allowed if the key lists the full name', async t => {
  for (const model of ['no,such', 'sim,status=503,retry_after=2']) {
    t.equal((await ask('/v1/chat/completions', JSON.stringify({ model }), COMMA)).status, 200, model)
  }
  for (const model of ['no', 'no, such', 'such,no', 'sim']) {
    t.equal((await ask('/v1/chat/completions', JSON.stringify({ model }), COMMA)).status, 403, model)
  }
})

t.test('a key limited to some models cannot create a batch, even if the body names an allowed model', async t => {
  const requests = '[{"custom_id":"a","params":{"model":"no"}}]'
  for (const path of [
    '/v1/batches', '/v1/batches/', '/v1/Batches', '/v1/batches;x=1',
    '/v1/messages/batches', '/v1/Messages/batches/',
  ]) {
    const body = `{"model":"may","input_file_id":"file-1","requests":${requests}}`
    t.equal((await ask(path, body)).status, 403, path)
    t.strictSame(seen, [])
    t.equal((await ask(path, body, ANY)).status, 200, path)
  }
  t.equal((await ask('/v1/batches-of-mine', '{"model":"may"}')).status, 200)
})

t.test('a path with an escaped slash outside the model name is refused, because most servers decode the slash', async t => {
  for (const path of [
    '/v1/chat%2Fcompletions', '/v1%2fchat/completions', '/v1/x%2Fy', '/v1/models%2Fno',
    '/v1beta/models%2Fno:generateContent', '/v1beta/models/may:x%2Fy',
  ]) {
    const { status, text } = await ask(path, '{"model":"may"}', ANY)
    t.equal(status, 400, path)
    t.match(text, /escaped slash/)
  }
  t.strictSame(seen, [])
  t.equal((await ask('/v1beta/models/org%2Fname:generateContent', '{}', ANY)).status, 200)
  t.strictSame(seen, ['/v1beta/models/org%2Fname:generateContent {}'])
})

t.test('a path with parameters before its last segment is refused, because servers in Java remove parameters', async t => {
  for (const path of [
    '/v1beta/models;x=1/no:generateContent', '/v1beta1/publishers;x/google/models/no:generateContent',
    '/v1beta1;x/publishers/google/models/no:generateContent', '/v1/chat;x=1/completions', '/v1/batches;/b',
    '/v1/projects/p;x/locations/l/interactions', '/upload;x/v1beta/files', '/upload/v1beta;x/files',
  ]) {
    const { status, text } = await ask(path, '{"model":"may"}')
    t.equal(status, 400, path)
    t.match(text, /only the last part/)
    t.strictSame(seen, [])
  }
  t.equal((await ask('/v1/batches-of-mine;x=1', '{"model":"may"}')).status, 200)
  t.equal((await ask('/v1beta/models/org;x/name:generateContent', '{}', ANY)).status, 200)
})

t.test('a model in the query that differs from the model in the body is refused', async t => {
  for (const path of ['/v1/listen', '/v1/chat/completions', '/v1/messages', '/v1/responses']) {
    const { status, text } = await ask(`${path}?a=b&m%6fdel=no`, '{"model":"may"}')
    t.equal(status, 400, path)
    t.match(text, /more than once/)
    t.strictSame(seen, [])
    t.equal((await ask(`${path}?model=may&beta=true`, '{"model":"may"}')).status, 200, path)
    t.equal((await ask(`${path}?model=fast&beta=true`, '{"model":"fast"}')).status, 200, path)
    t.strictSame(seen, [`${path}?model=real&beta=true {"model":"real"}`], 'the model is renamed in query and body')
  }
  t.equal((await ask('/v1beta/models/fast:predict?model=fast', '{}')).status, 200)
  t.strictSame(seen, ['/v1beta/models/real:predict?model=real {}'])
})

t.test('a model in the body that differs from the model in the path is refused', async t => {
  for (const path of ['/v1beta/models/may:generateContent', '/v1beta/models/may:predict']) {
    for (const model of ['no', 'models/no', 'no/may', 'models/no/may', 'other-models/may']) {
      const { status, text } = await ask(path, JSON.stringify({ model }))
      t.equal(status, 400, `${path} ${model}`)
      t.match(text, /more than once/)
      t.strictSame(seen, [])
    }
    for (const model of ['may', 'models/may', 'projects/p/locations/l/publishers/google/models/may']) {
      t.equal((await ask(path, JSON.stringify({ model }))).status, 200, `${path} ${model}`)
    }
  }
  t.equal((await ask('/v1beta/tunedModels/may:generateContent', '{"model":"tunedModels/may"}')).status, 200)
})

t.test('a model in the query that differs from the model in the path is refused', async t => {
  for (const path of [
    '/v1beta/models/may:generateContent', '/v1beta1/publishers/google/models/may:predict',
    '/v1/projects/p/locations/l/endpoints/may/chat/completions',
  ]) {
    for (const key of [LIMITED, ANY]) {
      const { status, text } = await ask(`${path}?a=b&m%6fdel=no`, '{}', key)
      t.equal(status, 400, path)
      t.match(text, /more than once/)
      t.strictSame(seen, [])
    }
    t.equal((await ask(`${path}?model=may`, '{}')).status, 200, path)
  }
  t.equal((await ask('/v1beta/models/no:generateContent?model=may', '{}')).status, 403)
})

t.test('JSON in a charset other than UTF-8 is refused, because Express reads UTF-7', async t => {
  const body = '{"model":"may","x":"+ACI-,+ACI-model+ACI-:+ACI-no"}'
  const long = `${'charset'.repeat(200)};charset=utf-8`
  for (const param of [
    'charset=utf-7', 'Charset="UTF-7"', 'x=y;charset = utf-7', "charset*=utf-8''utf-7", long,
  ]) {
    for (const path of ['/v1/chat/completions', '/v1/other']) {
      const { status, text } = await ask(path, body, LIMITED, `application/json; ${param}`)
      t.equal(status, 400, param)
      t.match(text, /JSON must be in UTF-8|content-type is longer/)
      t.strictSame(seen, [])
    }
  }
  for (const param of ['charset=utf-8', 'charset="UTF-8"', 'charset=us-ascii', 'charset=', 'x=y']) {
    const { status } = await ask('/v1/chat/completions', body, LIMITED, `application/json; ${param}`)
    t.equal(status, 200, param)
  }
})

t.test('a form in a charset other than UTF-8 is refused, because Starlette reads UTF-7', async t => {
  const field = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const body = `${field('model', 'may')}${field('+AG0-odel', 'no')}--b--\r\n`
  for (const path of ['/v1/audio/transcriptions', '/v1/images/edits', '/v1/other']) {
    for (const param of ['charset=utf-7', 'Charset="UTF-7"', "charset*=utf-8''utf-7"]) {
      const { status, text } = await ask(path, body, LIMITED, `multipart/form-data; boundary=b; ${param}`)
      t.equal(status, 400, `${path} ${param}`)
      t.match(text, /a form must be in UTF-8/)
      t.strictSame(seen, [])
    }
    const { status } = await ask(path, body, LIMITED, 'multipart/form-data; boundary=b; charset=utf-8')
    t.equal(status, 200, path)
  }
})

t.test('a key limited to some models cannot open a WebSocket of Gemini Live, even with an allowed model in the query', async t => {
  for (const path of [
    '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent',
    '/ws/google.ai.generativelanguage.v1beta.GenerativeService.%42idiGenerateContent',
  ]) {
    seen = []
    t.match(await rawRequest(gateway.url, [
      `GET ${path}?model=may HTTP/1.1`, 'Host: gateway', `x-api-key: ${LIMITED}`, 'Connection: Upgrade',
      'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '',
    ].join('\r\n')), /^HTTP\/1\.1 403 /, path)
    t.strictSame(seen, [])
  }
})

t.test('a WebSocket is refused if its path and its query name different models', async t => {
  for (const [path, status] of [
    ['/v1beta1/projects/p/locations/l/endpoints/no/invoke/ws?model=may', 403],
    ['/v1beta/models/no:unheardOf?model=may', 403],
    ['/v1beta/models/may:unheardOf?model=no', 400],
    ['/v1beta/models/may:unheardOf', 200],
    ['/v1beta/models/fast:unheardOf?model=fast', 200],
  ] as const) {
    seen = []
    await rawRequest(gateway.url, [
      `GET ${path} HTTP/1.1`, 'Host: gateway', `x-api-key: ${LIMITED}`, 'Connection: Upgrade',
      'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '',
    ].join('\r\n'))
    t.strictSame(seen, status !== 200 ? [] : [`${path.replaceAll('fast', 'real')} `], path)
  }
})
