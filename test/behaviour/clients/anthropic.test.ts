import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic0'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { NARROW_KEY, rejection, startForClients } from './setup.ts'

/** Headers and query that the client adds itself. */
interface Sent {
  readonly credential: string
  readonly version: string
  /** The query of the beta namespace. */
  readonly beta: string
}

const CLIENTS: [string, typeof Anthropic, Sent][] = [
  ['@anthropic-ai/sdk 1', Anthropic, { credential: 'authorization', version: '2026-10-21', beta: '' }],
  // The calls below are the same in both majors; their types are not.
  [
    '@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic,
    { credential: 'x-api-key', version: '2023-06-01', beta: '?beta=true' },
  ],
]
const ASKED = {
  model: 'sim,tokens=3',
  max_tokens: 2000,
  messages: [{ role: 'user' as const, content: '12345678' }],
}
const SCHEMA = { type: 'object' as const, properties: { at: { type: 'string' } } }
const TOOLS = {
  tools: [{ name: 'look', input_schema: SCHEMA }],
  tool_choice: { type: 'any' as const },
}

for (const [name, Client, sent] of CLIENTS) {
  t.test(`${name} needs only a base URL and a key`, async t => {
    const gateway = await startForClients(t)
    const client = new Client({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 })

    t.test('a message is created', async t => {
      const { data, response, request_id } = await client.messages.create(ASKED).withResponse()
      t.match(data, { content: [{ type: 'text', text: 'w1 w2 w3' }], stop_reason: 'end_turn' })
      t.match(request_id, /^req_/, 'the client gets the request id of the upstream')
      t.match(response.headers.get('x-gateway-request-id'), /^[\da-f-]{36}$/)
    })

    t.test('a message is streamed', async t => {
      let text = ''
      const types: string[] = []
      for await (const event of await client.messages.create({ ...ASKED, stream: true })) {
        types.push(event.type)
        if (event.type !== 'content_block_delta') continue
        if (event.delta.type === 'text_delta') text += event.delta.text
      }
      t.equal(text, 'w1 w2 w3')
      t.equal(types[0], 'message_start')
      t.equal(types.at(-1), 'message_stop')
      const final = await client.messages
        .stream({ ...ASKED, model: 'sim,tokens=3,input=50,cached=20,cache_write=10' })
        .finalMessage()
      t.match(final.content, [{ type: 'text', text: 'w1 w2 w3' }])
      t.match(final.usage, {
        input_tokens: 20, cache_read_input_tokens: 20, cache_creation_input_tokens: 10, output_tokens: 3,
      })
    })

    t.test('thinking arrives with a signature', async t => {
      const asked = { ...ASKED, thinking: { type: 'enabled' as const, budget_tokens: 1024 } }
      for (const answer of [
        await client.messages.create(asked),
        await client.messages.stream(asked).finalMessage(),
      ]) {
        t.match(answer.content, [
          { type: 'thinking', thinking: 'r1 r2 r3 r4 r5 r6 r7 r8', signature: /^\S+$/ },
          { type: 'text' },
        ])
      }
    })

    t.test('tools are called, also in the beta namespace', async t => {
      const asked = { ...ASKED, ...TOOLS }
      for (const answer of [
        await client.messages.create(asked),
        await client.messages.stream(asked).finalMessage(),
        await client.beta.messages.create(asked),
        await client.beta.messages.stream(asked).finalMessage(),
      ]) {
        t.match(answer.content, [{ type: 'tool_use', id: /^toolu_/, name: 'look', input: { at: 'w1' } }])
        t.equal(answer.stop_reason, 'tool_use')
      }
    })

    t.test('tokens are counted', async t => {
      const asked = { model: 'sim', messages: ASKED.messages }
      t.equal((await client.messages.countTokens(asked)).input_tokens, 2)
      t.equal((await client.beta.messages.countTokens(asked)).input_tokens, 2)
    })

    t.test('the names of beta features are forwarded, but not the key', async t => {
      const echo: unknown = await client.beta.messages.create({
        ...ASKED, model: 'sim,echo', betas: ['context-1m-2025-08-07', 'files-api-2025-04-14'],
      })
      const { headers, target } = echo as { headers: Record<string, string>; target: string }
      t.equal(target, `/v1/messages${sent.beta}`)
      t.equal(headers['anthropic-beta'], 'context-1m-2025-08-07,files-api-2025-04-14')
      t.equal(headers['anthropic-version'], sent.version)
      t.equal(headers[sent.credential], undefined)
      t.notMatch(JSON.stringify(echo), KEY)
    })

    t.test('only models that the key can use are listed', async t => {
      const ids = async (apiKey: string) => {
        const found: string[] = []
        const list = new Client({ baseURL: gateway.url, apiKey, maxRetries: 0 }).models.list()
        for await (const model of list) found.push(model.id)
        return found.sort()
      }
      t.strictSame(await ids(KEY), ['alias', 'plain', 'sim-listed'])
      t.strictSame(await ids(NARROW_KEY), ['plain'])
      t.match(await client.models.retrieve('sim-listed'), { id: 'sim-listed', type: 'model' })
      t.ok(await rejection(t, client.models.retrieve('none'), 'none') instanceof Client.NotFoundError)
      t.match(await client.models.retrieve('sim-of-a-glob'), { id: 'sim-of-a-glob' }, 'a model of a glob is served')
      const narrow = client.withOptions({ apiKey: NARROW_KEY }).models.retrieve('sim-of-a-glob')
      t.ok(await rejection(t, narrow, 'narrow') instanceof Client.NotFoundError)
    })

    t.test('requests to other endpoints are forwarded', async t => {
      const file: unknown = await client.beta.files.retrieveMetadata('file_1')
      t.match(file, { id: 'file_1' })
    })

    t.test('the log names the endpoint of each request', t => {
      const lines = gateway.logged.filter(line => line.msg === 'exchange')
      const endpoints = new Set(lines.map(line => line.endpoint))
      t.strictSame(
        [...endpoints].sort(), ['messages', 'messages.count_tokens', 'models.get', 'models.list', 'other'],
      )
      const refused = lines.filter(line => line.status !== 200).map(line => line.path)
      t.strictSame(refused, ['/v1/models/none', '/v1/models/sim-of-a-glob'])
      t.end()
    })
  })
}
