import { Agent } from 'node:https'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { ResponsesWS } from 'openai/resources/responses/ws'
import OpenAI6 from 'openai6'
import t from 'tap'
import { start } from '../../simulator/start.ts'

const CLIENTS: [string, typeof OpenAI][] = [
  ['openai 7', OpenAI],
  // The calls below are the same in both majors; their types are not.
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
]
const MESSAGES = [{ role: 'user' as const, content: '12345678' }]

for (const [name, Client] of CLIENTS) {
  t.test(name, async t => {
    const { url, simulator } = await start(t)
    const client = new Client({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })

    t.test('chat completions as body and stream', async t => {
      const whole = await client.chat.completions.create({ model: 'sim,tokens=3', messages: MESSAGES })
      t.equal(whole.choices[0]?.message.content, 'w1 w2 w3')
      t.match(whole._request_id, /^req_/)
      const runner = client.chat.completions.stream({
        model: 'sim,tokens=3,reasoning=2',
        messages: MESSAGES,
        stream_options: { include_usage: true },
      })
      const final = await runner.finalChatCompletion()
      t.equal(final.choices[0]?.message.content, 'w1 w2 w3')
      t.equal(final.usage?.completion_tokens, 5)
    })

    t.test('tool calls as body and stream', async t => {
      const tools = [
        {
          type: 'function' as const,
          function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } },
        },
      ]
      const asked = { model: 'sim', messages: MESSAGES, tools, tool_choice: 'required' as const }
      for (const result of [
        await client.chat.completions.create(asked),
        await client.chat.completions.stream(asked).finalChatCompletion(),
      ]) {
        const call = result.choices[0]?.message.tool_calls?.[0]
        t.match(call, {
          id: /^call_/,
          type: 'function',
          function: { name: 'look', arguments: '{"at":"w1"}' },
        })
      }
    })

    t.test('completions', async t => {
      const whole = await client.completions.create({ model: 'sim', prompt: 'x', max_tokens: 2 })
      t.equal(whole.choices[0]?.text, ' w1 w2')
      let text = ''
      for await (const chunk of await client.completions.create({
        model: 'sim',
        prompt: 'x',
        max_tokens: 2,
        stream: true,
      })) {
        text += chunk.choices[0]?.text ?? ''
      }
      t.equal(text, ' w1 w2')
    })

    t.test('embeddings, which the client requests in base64', async t => {
      const result = await client.embeddings.create({ model: 'sim', input: 'abcd', dimensions: 4 })
      t.equal(result.data[0]?.embedding.length, 4)
      t.equal(result.usage.prompt_tokens, 1)
    })

    t.test('images as body and stream, and edits', async t => {
      const whole = await client.images.generate({ model: 'sim', prompt: 'x' })
      t.type(whole.data?.[0]?.b64_json, 'string')
      const types: string[] = []
      for await (const event of await client.images.generate({
        model: 'sim',
        prompt: 'x',
        stream: true,
        partial_images: 1,
      })) {
        types.push(event.type)
      }
      t.same(types, ['image_generation.partial_image', 'image_generation.completed'])
      const image = new File(['x'], 'x.png', { type: 'image/png' })
      const edited = await client.images.edit({ model: 'sim', prompt: 'x', image })
      t.equal(edited.usage?.input_tokens_details.image_tokens, 272)
    })

    t.test('audio as input and output', async t => {
      const file = new File([new Uint8Array(16_000)], 'a.mp3')
      const whole = await client.audio.transcriptions.create({ model: 'sim,tokens=2', file })
      t.match(whole, { text: 'w1 w2', usage: { type: 'tokens', input_tokens: 10 } })
      const text: string = await client.audio.transcriptions.create({
        model: 'sim,tokens=2',
        file,
        response_format: 'text',
      })
      t.equal(text, 'w1 w2\n')
      const types: string[] = []
      for await (const event of await client.audio.transcriptions.create({
        model: 'sim,tokens=1',
        file,
        stream: true,
      })) {
        types.push(event.type)
      }
      t.same(types, ['transcript.text.delta', 'transcript.text.done'])
      t.equal((await client.audio.translations.create({ model: 'sim,tokens=1', file })).text, 'w1')
      const speech = await client.audio.speech.create({ model: 'sim,tokens=2', input: 'x', voice: 'alloy' })
      t.equal((await speech.arrayBuffer()).byteLength, 834)
    })

    t.test('responses as body and stream', async t => {
      const whole = await client.responses.create({ model: 'sim,tokens=2', input: 'x' })
      t.equal(whole.output_text, 'w1 w2')
      const stream = client.responses.stream({ model: 'sim,tokens=2,reasoning=1', input: 'x' })
      const types: string[] = []
      for await (const event of stream) types.push(event.type)
      t.equal(types.at(-1), 'response.completed')
      const final = await stream.finalResponse()
      t.equal(final.output_text, 'w1 w2')
      t.equal(final.usage?.output_tokens_details.reasoning_tokens, 1)
    })

    t.test('models, files and moderations', async t => {
      const models: string[] = []
      for await (const model of client.models.list()) models.push(model.id)
      t.ok(models.includes('sim'))
      t.equal((await client.models.retrieve('any')).id, 'any')
      const file = await client.files.create({ file: new File(['12345'], 'in.jsonl'), purpose: 'batch' })
      t.match(file, { bytes: 5, filename: 'in.jsonl', purpose: 'batch' })
      t.ok((await client.files.delete(file.id)).deleted)
      t.notOk((await client.moderations.create({ input: 'x' })).results[0]?.flagged)
    })

    t.test('each status throws its error class', async t => {
      const types = {
        400: Client.BadRequestError,
        401: Client.AuthenticationError,
        403: Client.PermissionDeniedError,
        404: Client.NotFoundError,
        409: Client.ConflictError,
        422: Client.UnprocessableEntityError,
        429: Client.RateLimitError,
        500: Client.InternalServerError,
        503: Client.InternalServerError,
      }
      for (const [status, type] of Object.entries(types)) {
        const asked = client.chat.completions.create({ model: `sim,status=${status}`, messages: MESSAGES })
        const error: unknown = await asked.catch((thrown: unknown) => thrown)
        t.ok(error instanceof type, status)
      }
    })

    t.test('a stream that fails or is cut throws an error', async t => {
      for (const fault of ['error_event_after=2', 'close_after=2', 'reset_after=2', 'malformed_after=2']) {
        const asked = { model: `sim,${fault}`, messages: MESSAGES, stream: true as const }
        const read = async () => {
          for await (const chunk of await client.chat.completions.create(asked)) void chunk
        }
        await t.rejects(read(), fault)
      }
    })

    t.test('a retry after the given delay succeeds', async t => {
      const before = simulator.stats.requests
      const patient = new Client({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 2 })
      const model = 'sim,status=429,retry_after_ms=1,first=1'
      const result = await patient.chat.completions.create({ model, messages: MESSAGES })
      t.match(result.choices[0]?.message.content, /^w1 /)
      t.equal(simulator.stats.requests - before, 2)
    })
  })
}

t.test('responses and realtime over WebSockets', async t => {
  const { url, port } = await start(t)
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' })
  const responses = new ResponsesWS(client)
  const completed = new Promise<string>((resolve, reject) => {
    responses.on('response.completed', event => resolve(event.response.status ?? ''))
    responses.on('error', reject)
  })
  responses.send({ type: 'response.create', model: 'sim,tokens=2', input: 'x' })
  t.equal(await completed, 'completed')
  responses.close()

  // This client supports only wss:, so its agent connects to the simulator without TLS.
  const agent = new Agent()
  agent.createConnection = () => connect(port, '127.0.0.1')
  const realtime = new OpenAIRealtimeWS({ model: 'sim,tokens=2', options: { agent } }, client)
  const said = new Promise<string>((resolve, reject) => {
    realtime.on('session.created', () => realtime.send({ type: 'response.create' }))
    realtime.on('response.output_text.done', event => resolve(event.text))
    realtime.on('error', reject)
  })
  t.equal(await said, 'w1 w2')
  realtime.close()
})
