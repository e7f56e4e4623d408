import OpenAI from 'openai'
import OpenAI6 from 'openai6'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { NARROW_KEY, rejection, startForClients } from './setup.ts'

const CLIENTS: [string, typeof OpenAI][] = [
  ['openai 7', OpenAI],
  // The calls below are the same in both majors; their types are not.
  ['openai 6', OpenAI6 as unknown as typeof OpenAI],
]
const MESSAGES = [{ role: 'user' as const, content: '12345678' }]
const TOOLS = [{
  type: 'function' as const,
  function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } },
}]

for (const [name, Client] of CLIENTS) {
  t.test(`${name} needs only a base URL and a key`, async t => {
    const gateway = await startForClients(t)
    const client = new Client({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })

    t.test('chat completions', async t => {
      const { data, response, request_id } = await client.chat.completions
        .create({ model: 'sim,tokens=3', messages: MESSAGES, n: 2 })
        .withResponse()
      t.strictSame(data.choices.map(choice => choice.message.content), ['w1 w2 w3', 'w1 w2 w3'])
      t.match(request_id, /^req_/, 'the client gets the request id of the upstream')
      t.match(response.headers.get('x-gateway-request-id'), /^[\da-f-]{36}$/)
      t.equal(response.headers.get('x-gateway-version'), '0.0.0-test')
    })

    t.test('chat completions, streamed', async t => {
      const texts = ['', '']
      const usages: unknown[] = []
      const asked = { model: 'sim,tokens=3', messages: MESSAGES, n: 2, stream: true as const }
      for await (const chunk of await client.chat.completions.create(asked)) {
        for (const choice of chunk.choices) texts[choice.index] += choice.delta.content ?? ''
        t.not(chunk.choices.length, 0, 'no usage chunk without include_usage')
        usages.push(chunk.usage)
      }
      t.strictSame(texts, ['w1 w2 w3', 'w1 w2 w3'])
      t.ok(usages.every(usage => usage === undefined || usage === null))
      const final = await client.chat.completions
        .stream({
          model: 'sim,tokens=3,reasoning=2,cached=1',
          messages: MESSAGES,
          stream_options: { include_usage: true },
        })
        .finalChatCompletion()
      t.equal(final.choices[0]?.message.content, 'w1 w2 w3')
      t.match(final.usage, {
        prompt_tokens: 2,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 2 },
      })
    })

    t.test('tool calls', async t => {
      const asked = { model: 'sim', messages: MESSAGES, tools: TOOLS, tool_choice: 'required' as const }
      for (const answer of [
        await client.chat.completions.create(asked),
        await client.chat.completions.stream(asked).finalChatCompletion(),
      ]) {
        const call = answer.choices[0]?.message.tool_calls?.[0]
        const called = { name: 'look', arguments: '{"at":"w1"}' }
        t.match(call, { id: /^call_/, type: 'function', function: called })
        t.equal(answer.choices[0]?.finish_reason, 'tool_calls')
      }
    })

    t.test('completions', async t => {
      const asked = { model: 'sim', prompt: 'x', max_tokens: 2 }
      t.equal((await client.completions.create(asked)).choices[0]?.text, ' w1 w2')
      let text = ''
      for await (const chunk of await client.completions.create({ ...asked, stream: true })) {
        text += chunk.choices[0]?.text ?? ''
      }
      t.equal(text, ' w1 w2')
    })

    t.test('embeddings', async t => {
      const many = await client.embeddings.create({ model: 'sim', input: ['abcd', 'efgh'], dimensions: 4 })
      t.strictSame(many.data.map(each => each.embedding.length), [4, 4])
      t.equal(many.usage.prompt_tokens, 2)
    })

    t.test('images are generated and edited, with and without stream', async t => {
      const asked = { model: 'sim', prompt: 'x' }
      t.type((await client.images.generate(asked)).data?.[0]?.b64_json, 'string')
      const image = new File(['x'], 'x.png', { type: 'image/png' })
      t.equal((await client.images.edit({ ...asked, image })).usage?.input_tokens_details.image_tokens, 272)
      const types: string[] = []
      const streaming = { ...asked, stream: true as const, partial_images: 1 }
      for await (const event of await client.images.generate(streaming)) types.push(event.type)
      for await (const event of await client.images.edit({ ...streaming, image })) types.push(event.type)
      t.strictSame(types, [
        'image_generation.partial_image', 'image_generation.completed',
        'image_edit.partial_image', 'image_edit.completed',
      ])
    })

    t.test('speech to text', async t => {
      const asked = { model: 'sim,tokens=2', file: new File([new Uint8Array(16_000)], 'a.mp3') }
      const whole = await client.audio.transcriptions.create(asked)
      t.match(whole, { text: 'w1 w2', usage: { type: 'tokens', input_tokens: 10 } })
      const text: string = await client.audio.transcriptions.create({ ...asked, response_format: 'text' })
      t.equal(text, 'w1 w2\n')
      const types: string[] = []
      for await (const event of await client.audio.transcriptions.create({ ...asked, stream: true })) {
        types.push(event.type)
      }
      t.strictSame(types, ['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done'])
      t.equal((await client.audio.translations.create(asked)).text, 'w1 w2')
    })

    t.test('text to speech', async t => {
      const speech = await client.audio.speech.create({ model: 'sim,tokens=2', input: 'x', voice: 'alloy' })
      t.equal(speech.headers.get('content-type'), 'audio/mpeg')
      t.equal((await speech.arrayBuffer()).byteLength, 834)
    })

    t.test('responses', async t => {
      const whole = await client.responses.create({ model: 'sim,tokens=2', input: 'x' })
      t.equal(whole.output_text, 'w1 w2')
      const stream = client.responses.stream({ model: 'sim,tokens=2,reasoning=1', input: 'x' })
      const types: string[] = []
      for await (const event of stream) types.push(event.type)
      t.equal(types[0], 'response.created')
      t.equal(types.at(-1), 'response.completed')
      const final = await stream.finalResponse()
      t.equal(final.output_text, 'w1 w2')
      t.equal(final.usage?.output_tokens_details.reasoning_tokens, 1)
      const called = await client.responses.create({
        model: 'sim', input: 'x', tool_choice: 'required',
        tools: [{ type: 'function', name: 'look', parameters: { type: 'object' }, strict: false }],
      })
      t.match(called.output, [{ type: 'function_call', name: 'look', arguments: '{}' }])
    })

    t.test('only models that the key can use are listed', async t => {
      const ids = async (client: OpenAI) => {
        const found: string[] = []
        for await (const model of client.models.list()) found.push(model.id)
        return found.sort()
      }
      t.strictSame(await ids(client), ['alias', 'plain', 'sim-listed'])
      t.strictSame(await ids(client.withOptions({ apiKey: NARROW_KEY })), ['plain'])
      t.match(await client.models.retrieve('sim-listed'), { id: 'sim-listed', object: 'model' })
      t.ok(await rejection(t, client.models.retrieve('none'), 'none') instanceof Client.NotFoundError)
      t.match(await client.models.retrieve('sim-of-a-glob'), { id: 'sim-of-a-glob' }, 'a model of a glob is served')
      const narrow = client.withOptions({ apiKey: NARROW_KEY }).models.retrieve('sim-of-a-glob')
      t.ok(await rejection(t, narrow, 'narrow') instanceof Client.NotFoundError)
    })

    t.test('requests to other endpoints are forwarded', async t => {
      const file = await client.files.create({ file: new File(['12345'], 'in.jsonl'), purpose: 'batch' })
      t.match(file, { bytes: 5, filename: 'in.jsonl', purpose: 'batch' })
      t.equal((await client.files.retrieve(file.id)).id, file.id)
      t.match(await (await client.files.content(file.id)).text(), file.id)
      t.ok((await client.files.delete(file.id)).deleted)
      t.equal((await client.files.list()).data.length, 1)
      t.notOk((await client.moderations.create({ input: 'x' })).results[0]?.flagged)
      const batch = await client.batches.create({
        completion_window: '24h', endpoint: '/v1/responses', input_file_id: file.id,
      })
      t.match(batch, { object: 'simulated', method: 'POST', path: '/v1/batches' })
      t.match(await client.batches.cancel('batch_1'), { method: 'POST', path: '/v1/batches/batch_1/cancel' })
    })

    t.test('all headers except the key are forwarded', async t => {
      const echo: unknown = await client.chat.completions.create(
        { model: 'sim,echo', messages: MESSAGES }, { headers: { 'OpenAI-Project': 'p1', 'x-mine': '1' } },
      )
      const { headers } = echo as { headers: Record<string, string> }
      t.notMatch(JSON.stringify(echo), KEY)
      t.equal(headers.authorization, undefined)
      const passed = { 'openai-project': 'p1', 'x-mine': '1', 'x-stainless-lang': 'js' }
      t.match(headers, { ...passed, via: '1.1 model-gateway' })
    })

    t.test('the log names the endpoint of each request', t => {
      const lines = gateway.logged.filter(line => line.msg === 'exchange')
      const endpoints = new Set(lines.map(line => line.endpoint))
      t.strictSame([...endpoints].sort(), [
        'audio.speech', 'audio.transcriptions', 'audio.translations', 'chat.completions', 'completions',
        'embeddings', 'images.edits', 'images.generations', 'models.get', 'models.list', 'other', 'responses',
      ])
      const refused = lines.filter(line => line.status !== 200).map(line => line.path)
      t.strictSame(refused, ['/v1/models/none', '/v1/models/sim-of-a-glob'])
      t.end()
    })
  })
}
