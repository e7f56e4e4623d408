import { FunctionCallingConfigMode, GoogleGenAI } from '@google/genai'
import { GoogleGenAI as GoogleGenAI2 } from 'genai2'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { NARROW_KEY, rejection, startForClients } from './setup.ts'

const CLIENTS: [string, typeof GoogleGenAI, string][] = [
  ['@google/genai 3', GoogleGenAI, 'v1'],
  // The calls below are the same in both majors; their types are not.
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI, 'v1beta'],
]
const TOOLS = {
  tools: [{
    functionDeclarations: [{
      name: 'look', parametersJsonSchema: { type: 'object', properties: { at: { type: 'string' } } },
    }],
  }],
  toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
}

for (const [name, Client, version] of CLIENTS) {
  t.test(`${name} needs only a base URL and a key`, async t => {
    const gateway = await startForClients(t)
    const connect = (apiKey: string) => new Client({ apiKey, httpOptions: { baseUrl: gateway.url } })
    const client = connect(KEY)
    const { models } = client

    t.test('generateContent', async t => {
      const answer = await models.generateContent({ model: 'sim,tokens=3,cached=1', contents: '12345678' })
      t.equal(answer.text, 'w1 w2 w3')
      const usage = { promptTokenCount: 2, cachedContentTokenCount: 1, candidatesTokenCount: 3 }
      t.match(answer.usageMetadata, usage)
      t.match(answer.sdkHttpResponse?.headers?.['x-gateway-request-id'], /^[\da-f-]{36}$/)
    })

    t.test('generateContentStream', async t => {
      let text = ''
      let reason: string | undefined
      let usage: unknown
      const asked = { model: 'sim,tokens=3', contents: '12345678' }
      for await (const chunk of await models.generateContentStream(asked)) {
        text += chunk.text ?? ''
        reason = chunk.candidates?.[0]?.finishReason
        usage = chunk.usageMetadata
      }
      t.equal(text, 'w1 w2 w3')
      t.equal(reason, 'STOP')
      t.match(usage, { promptTokenCount: 2, candidatesTokenCount: 3, totalTokenCount: 5 })
    })

    t.test('thoughts arrive with a signature', async t => {
      const asked = {
        model: 'sim,tokens=2', contents: 'x', config: { thinkingConfig: { includeThoughts: true } },
      }
      const whole = await models.generateContent(asked)
      t.match(whole.candidates?.[0]?.content?.parts, [
        { thought: true, text: /^r1 r2/ },
        { text: 'w1 w2', thoughtSignature: /^\S+$/ },
      ])
      t.equal(whole.usageMetadata?.thoughtsTokenCount, 8)
      const signatures: unknown[] = []
      for await (const chunk of await models.generateContentStream(asked)) {
        for (const part of chunk.candidates?.[0]?.content?.parts ?? []) signatures.push(part.thoughtSignature)
      }
      t.match(signatures.at(-1), /^\S+$/)
    })

    t.test('function calls', async t => {
      const asked = { model: 'sim', contents: 'x', config: TOOLS }
      t.match((await models.generateContent(asked)).functionCalls, [{ name: 'look', args: { at: 'w1' } }])
      const called: unknown[] = []
      for await (const chunk of await models.generateContentStream(asked)) {
        called.push(...chunk.functionCalls ?? [])
      }
      t.match(called, [{ name: 'look', args: { at: 'w1' } }])
    })

    t.test('a chat is streamed', async t => {
      const chat = client.chats.create({ model: 'sim,tokens=2' })
      for (const turn of ['first', 'second']) {
        let text = ''
        for await (const chunk of await chat.sendMessageStream({ message: turn })) text += chunk.text ?? ''
        t.equal(text, 'w1 w2')
      }
      t.equal(chat.getHistory().filter(content => content.role === 'user').length, 2)
    })

    t.test('tokens are counted', async t => {
      t.equal((await models.countTokens({ model: 'sim', contents: '12345678' })).totalTokens, 2)
    })

    t.test('one embedding or several are created', async t => {
      const config = { outputDimensionality: 5 }
      const one = await models.embedContent({ model: 'sim', contents: 'a', config })
      t.strictSame(one.embeddings?.map(each => each.values?.length), [5])
      const two = await models.embedContent({ model: 'sim', contents: ['a', 'b'], config })
      t.strictSame(two.embeddings?.map(each => each.values?.length), [5, 5])
    })

    t.test('only models that the key can use are listed', async t => {
      const names = async (apiKey: string) => {
        const found: (string | undefined)[] = []
        for await (const model of await connect(apiKey).models.list()) found.push(model.name)
        return found.sort()
      }
      t.strictSame(await names(KEY), ['models/alias', 'models/plain', 'models/sim-listed'])
      t.strictSame(await names(NARROW_KEY), ['models/plain'])
      t.equal((await models.get({ model: 'sim-listed' })).name, 'models/sim-listed')
      t.match(await rejection(t, models.get({ model: 'none' }), 'none'), { name: 'ApiError', status: 404 })
      t.equal((await models.get({ model: 'sim-of-a-glob' })).name, 'models/sim-of-a-glob')
      const narrow = connect(NARROW_KEY).models.get({ model: 'sim-of-a-glob' })
      t.match(await rejection(t, narrow, 'narrow'), { name: 'ApiError', status: 404 })
    })

    t.test('all headers except the key are forwarded', async t => {
      let seen = ''
      // Reads the response before the client, which shows only the fields that it knows.
      const looking: typeof fetch = async (input, init) => {
        const answer = await fetch(input, init)
        seen = await answer.clone().text()
        return answer
      }
      const { models } = new Client({ apiKey: KEY, httpOptions: { baseUrl: gateway.url, fetch: looking } })
      await models.generateContent({
        model: 'sim,echo', contents: 'x', config: { httpOptions: { headers: { 'x-mine': '1' } } },
      })
      const { headers, target } = JSON.parse(seen) as { headers: Record<string, string>; target: string }
      t.equal(target, `/${version}/models/sim,echo:generateContent`)
      t.equal(headers['x-goog-api-key'], undefined)
      t.notMatch(seen, KEY)
      t.match(headers, { 'x-mine': '1', 'x-goog-api-client': /google-genai-sdk/ })
    })

    t.test('the log names the endpoint of each request', t => {
      const lines = gateway.logged.filter(line => line.msg === 'exchange')
      const endpoints = new Set(lines.map(line => line.endpoint))
      t.strictSame([...endpoints].sort(), [
        'generate.batch_embed', 'generate.content', 'generate.count_tokens', 'generate.stream',
        'models.get', 'models.list',
      ])
      t.ok(lines.every(line => String(line.path).startsWith(`/${version}/models`)), 'under its own version')
      const refused = lines.filter(line => line.status !== 200)
      const names = ['none', 'sim-of-a-glob']
      t.strictSame(refused.map(line => line.path), names.map(id => `/${version}/models/${id}`))
      t.end()
    })
  })
}
