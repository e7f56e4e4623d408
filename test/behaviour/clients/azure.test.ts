import { AzureOpenAI, toFile } from 'openai'
import { AzureOpenAI as AzureOpenAI6 } from 'openai6'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks, priced } from '../billing/books.ts'
import { drained, NARROW_KEY, rejection, startForClients, WRONG_KEY } from './setup.ts'

/** The Azure class of the SDK; only endpoint and key are changed. */
const CLIENTS: [string, typeof AzureOpenAI][] = [
  ['openai 7', AzureOpenAI],
  ['openai 6', AzureOpenAI6 as unknown as typeof AzureOpenAI],
]
const MESSAGES = [{ role: 'user' as const, content: '12345678' }]
const VERSION = '2024-10-21'

for (const [name, Client] of CLIENTS) {
  const connect = (endpoint: string, apiKey = KEY, deployment?: string) => new Client({
    endpoint, apiKey, apiVersion: VERSION, maxRetries: 0, ...deployment !== undefined && { deployment },
  })

  t.test(`${name}: AzureOpenAI needs only an endpoint and a key`, async t => {
    const { url } = await startForClients(t)
    const client = connect(url)

    t.test('chat completions work with and without stream', async t => {
      const asked = { model: 'sim,tokens=3', messages: MESSAGES }
      const { data, response } = await client.chat.completions.create(asked).withResponse()
      t.equal(data.choices[0]?.message.content, 'w1 w2 w3')
      t.match(response.headers.get('x-gateway-request-id'), /^[\da-f-]{36}$/)
      let text = ''
      for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
        text += chunk.choices[0]?.delta.content ?? ''
        t.not(chunk.choices.length, 0, 'no usage chunk without include_usage')
      }
      t.equal(text, 'w1 w2 w3')
    })

    t.test('the deployment in the client takes precedence over the model of a call', async t => {
      const deployed = connect(url, KEY, 'sim,tokens=2')
      for (const model of ['', '<ignored>', 'sim,tokens=5']) {
        const answer = await deployed.chat.completions.create({ model, messages: MESSAGES })
        t.equal(answer.choices[0]?.message.content, 'w1 w2', model)
        t.equal(answer.model, 'sim,tokens=2')
      }
    })

    t.test('endpoints with a deployment in the path work', async t => {
      const completion = await client.completions.create({ model: 'sim,tokens=2', prompt: 'x' })
      t.equal(completion.choices[0]?.text, ' w1 w2')
      t.equal((await client.embeddings.create({ model: 'sim', input: ['a', 'b'] })).data.length, 2)
      t.equal((await client.images.generate({ model: 'sim', prompt: 'a cat' })).data?.length, 1)
      const sound = await client.audio.speech.create({ model: 'sim', voice: 'alloy', input: 'hello' })
      t.ok((await sound.arrayBuffer()).byteLength > 0)
      const file = await toFile(Buffer.alloc(1000), 'a.wav')
      for (const each of [client, connect(url, KEY, 'sim,tokens=2')]) {
        const model = each === client ? 'sim,tokens=2' : '<ignored>'
        t.equal((await each.audio.transcriptions.create({ model, file })).text, 'w1 w2')
      }
    })

    t.test('endpoints without a deployment in the path work', async t => {
      const asked = { model: 'sim,tokens=2', input: 'x' }
      t.match(await client.responses.create(asked), { output_text: 'w1 w2' })
      const events = await drained(client.responses.create({ ...asked, stream: true }))
      t.match(events.at(-1), { type: 'response.completed' })
      const models = await client.models.list()
      t.ok(models.data.some(({ id }) => id === 'sim-listed'))
      t.equal((await client.models.retrieve('plain')).id, 'plain')
      t.ok((await client.files.list()).data)
    })

    t.test('the SDK raises errors with status and code, and a key works as a token', async t => {
      const ask = (key: string, model: string) =>
        connect(url, key).chat.completions.create({ model, messages: MESSAGES })
      for (const [key, model, error] of [
        [WRONG_KEY, 'plain', { status: 401, code: 'invalid_api_key' }],
        [NARROW_KEY, 'sim', { status: 403, code: 'model_not_allowed' }],
        [KEY, 'none', { status: 404, code: 'model_not_found' }],
        [KEY, 'sim,status=429', { status: 429 }],
      ] as const) t.match(await rejection(t, ask(key, model), model), error)
      const token = new Client({
        endpoint: url, apiVersion: VERSION, maxRetries: 0, azureADTokenProvider: async () => KEY,
      })
      t.ok(await token.chat.completions.create({ model: 'plain', messages: MESSAGES }), 'a key sent as a token is accepted')
    })
  })

  t.test(`${name}: AzureOpenAI requests are forwarded and priced`, async t => {
    const seen: string[] = []
    const upstream = await startUpstream(t, async (req, res) => {
      t.equal(req.headers['api-key'], 'vendor-key', 'only the credential of the operator is sent upstream')
      t.equal(req.headers.authorization, undefined)
      const { model } = JSON.parse((await bodyOf(req)).toString()) as { model: string }
      seen.push(`${req.url} ${model}`)
      const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
      const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }]
      res.setHeader('content-type', 'application/json').end(JSON.stringify({ model, choices, usage }))
    })
    const books = await openBooks(t, `
upstreams:
  azure: { url: "${upstream.url}", v1: /openai/v1, auth: { header: api-key, value: vendor-key } }
routes:
  - { path: /v1/chat/*, model: [fast, org/name], to: { upstream: azure, model: m } }
  - { path: "/openai/deployments/as-it-is/*", to: { upstream: azure, model: m } }
keys: [{ name: some, key: ${KEY}, models: [fast, org/name, as-it-is] }]
${priced('m')}`)
    const client = connect(books.gateway.url)
    for (const model of ['fast', 'org/name', 'as-it-is']) {
      await client.chat.completions.create({ model, messages: MESSAGES })
    }
    t.strictSame(seen, [
      '/openai/v1/chat/completions m',
      '/openai/v1/chat/completions m',
      `/openai/deployments/m/chat/completions?api-version=${VERSION} m`,
    ])
    const rows = [...(await books.close()).values()]
    t.strictSame(
      rows.map(({ endpoint, model, usage }) => [endpoint, model, usage.inputTokens, usage.outputTokens]),
      ['fast', 'org/name', 'as-it-is'].map(model => ['chat.completions', model, 7, 5]),
    )
    t.ok(rows.every(({ costPico }) => costPico === 96_000_000n))
  })
}
