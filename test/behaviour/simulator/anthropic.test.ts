import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic0'
import t from 'tap'
import { start } from '../../simulator/start.ts'

const CLIENTS: [string, typeof Anthropic][] = [
  ['@anthropic-ai/sdk 1', Anthropic],
  // The calls below are the same in both majors; their types are not.
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic],
]
const ASKED = {
  model: 'sim,tokens=3',
  max_tokens: 2000,
  messages: [{ role: 'user' as const, content: '12345678' }],
}

for (const [name, Client] of CLIENTS) {
  t.test(name, async t => {
    const { url } = await start(t)
    const client = new Client({ baseURL: url, apiKey: 'none', maxRetries: 0 })

    t.test('messages as body and stream', async t => {
      const whole = await client.messages.create(ASKED)
      t.match(whole, { content: [{ type: 'text', text: 'w1 w2 w3' }], stop_reason: 'end_turn' })
      t.match(whole._request_id, /^req_/)
      const streamed = await client.messages
        .stream({ ...ASKED, model: 'sim,tokens=3,input=50,cached=20' })
        .finalMessage()
      t.match(streamed.content, [{ type: 'text', text: 'w1 w2 w3' }])
      t.match(streamed.usage, { input_tokens: 30, cache_read_input_tokens: 20, output_tokens: 3 })
    })

    t.test('thinking', async t => {
      const asked = { ...ASKED, thinking: { type: 'enabled' as const, budget_tokens: 1024 } }
      for (const result of [
        await client.messages.create(asked),
        await client.messages.stream(asked).finalMessage(),
      ]) {
        t.match(result.content, [
          { type: 'thinking', thinking: 'r1 r2 r3 r4 r5 r6 r7 r8', signature: /^\S+$/ },
          { type: 'text' },
        ])
      }
    })

    t.test('tool calls, also in the beta namespace', async t => {
      const input_schema = { type: 'object' as const, properties: { at: { type: 'string' } } }
      const asked = {
        ...ASKED,
        tools: [{ name: 'look', input_schema }],
        tool_choice: { type: 'any' as const },
      }
      for (const result of [
        await client.messages.create(asked),
        await client.messages.stream(asked).finalMessage(),
        await client.beta.messages.create(asked),
      ]) {
        t.match(result.content, [{ type: 'tool_use', id: /^toolu_/, name: 'look', input: { at: 'w1' } }])
        t.equal(result.stop_reason, 'tool_use')
      }
    })

    t.test('count_tokens', async t => {
      t.equal((await client.messages.countTokens({ model: 'sim', messages: ASKED.messages })).input_tokens, 2)
    })

    t.test('models', async t => {
      const models: string[] = []
      for await (const model of client.models.list()) models.push(model.id)
      t.ok(models.includes('sim'))
      t.match(await client.models.retrieve('any'), { id: 'any', type: 'model' })
    })

    t.test('each status throws its error class', async t => {
      const types = {
        400: Client.BadRequestError,
        401: Client.AuthenticationError,
        403: Client.PermissionDeniedError,
        404: Client.NotFoundError,
        429: Client.RateLimitError,
        500: Client.InternalServerError,
        529: Client.InternalServerError,
      }
      for (const [status, type] of Object.entries(types)) {
        const asked = client.messages.create({ ...ASKED, model: `sim,status=${status}` })
        const error: unknown = await asked.catch((thrown: unknown) => thrown)
        t.ok(error instanceof type, status)
      }
    })

    t.test('a stream that fails or is cut throws an error', async t => {
      for (const fault of [
        'error_event_after=3',
        'cut_after=4',
        'no_terminator',
        'close_after=4',
        'reset_after=4',
      ]) {
        const stream = client.messages.stream({ ...ASKED, model: `sim,${fault}` })
        await t.rejects(stream.finalMessage(), fault)
      }
    })
  })
}
