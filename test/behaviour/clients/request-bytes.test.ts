import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { jsonText } from '../../protocols/json/json-texts.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { post, startKeepingUpstream } from './exchange.ts'
import type { Arrived, Sent } from './exchange.ts'

const CREDENTIAL = { authorization: `Bearer ${KEY}` }

/** A gateway that forwards the model `same` with its name, and `asked` with another name. */
async function start(t: Test): Promise<(sent: Sent) => Promise<Arrived>> {
  const { url, arrived } = await startKeepingUpstream(t)
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${url}" } }
routes:
  - { model: asked, to: { upstream: up, model: "Served/größer:1" } }
  - { to: up }
`)
  return async sent => {
    const { status, body } = await post(gateway.url, { ...sent, headers: { ...CREDENTIAL, ...sent.headers } })
    t.equal(status, 200, body.toString())
    return arrived.at(-1) as Arrived
  }
}

/** Numbers, keys and texts in forms that serializers do not write. */
const ODD = ' "n" : [1.0,1e5,-0,12345678901234567890123,1E+2,0.10],\t"\\u006dodels":"asked",\r\n'
  + '"text":"caf\\u00e9 \\ud83d\\ude00 é",'
  + '"twice":1,"twice":2,"nested":{"model":"asked"},"list":[{"model":"asked"}]'

t.test('a request body is forwarded unchanged', async t => {
  const send = await start(t)
  const bodies: Record<string, string> = {
    '/v1/chat/completions': `{${ODD},"model":"same"}\n`,
    '/v1/completions': `{"model":"same",${ODD}}`,
    '/v1/responses': ` {"model":"same",${ODD},"stream":true}`,
    '/v1/embeddings': `{"model":"same",${ODD}}`,
    '/v1/messages?beta=true': `{"model":"same",${ODD},"stream":true}`,
    '/v1/messages/count_tokens?beta=true': `{"model":"same",${ODD}}`,
    '/v1beta/models/same:generateContent': `{${ODD}}`,
    '/v1beta/models/same:streamGenerateContent?alt=sse': `{${ODD}}`,
    '/v1beta/models/same:batchEmbedContents': `{"requests":[{"model":"models/same",${ODD}}]}`,
    '/v1/models/same:countTokens': `{"generateContentRequest":{"model":"models/same",${ODD}}}`,
    '/v1/anything/else': `[{${ODD}}]`,
  }
  for (const [path, body] of Object.entries(bodies)) {
    const arrived = await send({ path, body })
    t.ok(arrived.body.equals(Buffer.from(body)), path)
    t.equal(arrived.url, path)
    t.equal(arrived.headers['content-length'], String(Buffer.byteLength(body)))
  }
})

t.test('property: any JSON is forwarded unchanged, except the name of a renamed model', async t => {
  const send = await start(t)
  const named = fc.constantFrom(
    ['same', '"same"'], ['same', '"s\\u0061me"'], ['asked', '"asked"'], ['asked', '"\\u0061sked"'],
  )
  await fc.assert(fc.asyncProperty(named, jsonText, jsonText, async ([name, written], before, after) => {
    const around = (model: string) => Buffer.from(`{"a":${before},"model" : ${model},"b":${after}}`)
    const { body } = await send({ path: '/v1/chat/completions', body: around(written as string) })
    const due = around(name === 'asked' ? '"Served/größer:1"' : (written as string))
    if (!body.equals(due)) throw new Error(`${body.toString()} is not ${due.toString()}`)
  }), { numRuns: 150 })
})

t.test('renaming a model changes nothing else in the body', async t => {
  const send = await start(t)
  const inBody = [
    '/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/embeddings', '/v1/messages?beta=true',
  ]
  for (const path of inBody) {
    for (const written of ['"asked"', '"\\u0061sk\\u0065d"']) {
      const { body, headers, url } = await send({ path, body: `{${ODD},"model":\t${written} ,"z":1.0}` })
      t.equal(body.toString(), `{${ODD},"model":\t"Served/größer:1" ,"z":1.0}`, path)
      t.equal(headers['content-length'], String(body.length))
      t.equal(url, path)
    }
  }
  const twice = await send({ path: '/v1/messages', body: '{"model":"asked","n":1.0,"mod\\u0065l":"asked"}' })
  t.equal(twice.body.toString(), '{"model":"Served/größer:1","n":1.0,"mod\\u0065l":"Served/größer:1"}')
})

t.test('a model in the path is renamed in the path and in the body', async t => {
  const send = await start(t)
  const served = 'Served%2Fgr%C3%B6%C3%9Fer%3A1'
  for (const version of ['v1', 'v1beta']) {
    const path = `/${version}/models/asked:streamGenerateContent?alt=sse`
    const stream = await send({ path, body: `{${ODD}}` })
    t.equal(stream.url, `/${version}/models/${served}:streamGenerateContent?alt=sse`)
    t.equal(stream.body.toString(), `{${ODD}}`, 'the body is unchanged')
    const batch = await send({
      path: `/${version}/models/asked:batchEmbedContents`,
      body: '{ "requests":[ {"model":"models/asked","content":{"parts":[{"text":"models/asked"}]},"x":1.0},'
        + '{"content":1e5,"model" : "models\\/asked"}, {"content":1.0} ] }',
    })
    t.equal(batch.url, `/${version}/models/${served}:batchEmbedContents`)
    t.equal(
      batch.body.toString(),
      '{ "requests":[ '
        + '{"model":"models/Served/größer:1","content":{"parts":[{"text":"models/asked"}]},"x":1.0},'
        + '{"content":1e5,"model" : "models/Served/größer:1"}, {"content":1.0} ] }',
    )
    const count = await send({
      path: `/${version}/models/asked:countTokens`,
      body: '{"generateContentRequest":{"contents":[1.0],"model":"models/asked"}}',
    })
    t.equal(
      count.body.toString(),
      '{"generateContentRequest":{"contents":[1.0],"model":"models/Served/größer:1"}}',
    )
  }
})

t.test('renaming a model in a multipart form changes nothing else', async t => {
  const send = await start(t)
  const boundary = '----WebKitFormBoundary7MA4YWxkTrZu0gW'
  const audio = Buffer.from([0x52, 0x49, 0x46, 0x46, 0, 0xff, 0x0d, 0x0a, 0x2d, 0x2d, 0xc3, 0x28])
  const form = (model: string) => Buffer.concat([
    Buffer.from(`preamble\r\n--${boundary}\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n`),
    Buffer.from(`name="model"\r\n\r\nasked\r\n--${boundary}\r\n`),
    Buffer.from('Content-Disposition: form-data; name="file"; filename="model"\r\n'),
    Buffer.from('Content-Type: audio/wav\r\n\r\n'),
    audio,
    Buffer.from(`\r\n--${boundary}\r\ncontent-disposition: form-data; name=model\r\n\r\n${model}`),
    Buffer.from(`\r\n--${boundary}--\r\nepilogue asked`),
  ])
  for (const path of ['/v1/audio/transcriptions', '/v1/audio/translations', '/v1/images/edits']) {
    const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` }
    const same = await send({ path, headers, body: form('same') })
    t.ok(same.body.equals(form('same')), `${path}: the model keeps its name`)
    const renamed = await send({ path, headers, body: form('asked') })
    t.ok(renamed.body.equals(form('Served/größer:1')), `${path}: the model is renamed`)
    t.equal(renamed.headers['content-type'], headers['content-type'])
    t.equal(renamed.headers['content-length'], String(renamed.body.length))
  }
})

t.test('a compressed body is forwarded unchanged, or uncompressed if the model is renamed', async t => {
  const send = await start(t)
  const headers = { 'content-encoding': 'gzip' }
  const same = gzipSync(`{${ODD},"model":"same"}`)
  const asIs = await send({ path: '/v1/embeddings', headers, body: same })
  t.ok(asIs.body.equals(same))
  t.equal(asIs.headers['content-encoding'], 'gzip')
  const changed = await send({ path: '/v1/embeddings', headers, body: gzipSync(`{${ODD},"model":"asked"}`) })
  t.equal(changed.body.toString(), `{${ODD},"model":"Served/größer:1"}`)
  t.equal(changed.headers['content-encoding'], undefined)
})

t.test('include_usage is the only addition to a chat stream request', async t => {
  const send = await start(t)
  const path = '/v1/chat/completions'
  const asked = await send({ path, body: `{${ODD},"model":"same","stream":true}` })
  t.match(asked.body.toString(), /^\{.*"stream":true.*\}$/s)
  const without = asked.body.toString().replace(/,?"stream_options":\{"include_usage":true\},?/, '')
  t.equal(without, `{${ODD},"model":"same","stream":true}`)
  const own = `{"stream_options":{"include_usage":true,"x":1.0},${ODD},"model":"same","stream":true}`
  t.equal((await send({ path, body: own })).body.toString(), own, 'a body with include_usage is unchanged')
})
