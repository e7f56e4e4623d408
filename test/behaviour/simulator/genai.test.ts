import { ApiError, FunctionCallingConfigMode, GoogleGenAI } from '@google/genai'
import { ApiError as ApiError2, GoogleGenAI as GoogleGenAI2 } from 'genai2'
import t from 'tap'
import { start } from '../../simulator/start.ts'

const CLIENTS: [string, typeof GoogleGenAI, typeof ApiError][] = [
  ['@google/genai 3', GoogleGenAI, ApiError],
  // The calls below are the same in both majors; their types are not.
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI, ApiError2 as unknown as typeof ApiError],
]

for (const [name, Client, Failure] of CLIENTS) {
  t.test(name, async t => {
    const { url } = await start(t)
    const { models } = new Client({ apiKey: 'none', httpOptions: { baseUrl: url } })

    t.test('generateContent as body and stream', async t => {
      const whole = await models.generateContent({ model: 'sim,tokens=3,cached=1', contents: '12345678' })
      t.equal(whole.text, 'w1 w2 w3')
      t.match(whole.usageMetadata, {
        promptTokenCount: 2,
        cachedContentTokenCount: 1,
        candidatesTokenCount: 3,
      })
      let text = ''
      let reason: string | undefined
      for await (const chunk of await models.generateContentStream({
        model: 'sim,tokens=3',
        contents: 'x',
      })) {
        text += chunk.text ?? ''
        reason = chunk.candidates?.[0]?.finishReason
      }
      t.equal(text, 'w1 w2 w3')
      t.equal(reason, 'STOP')
    })

    t.test('thoughts', async t => {
      const config = { thinkingConfig: { includeThoughts: true } }
      const whole = await models.generateContent({ model: 'sim,tokens=2', contents: 'x', config })
      t.equal(whole.text, 'w1 w2')
      t.match(whole.candidates?.[0]?.content?.parts?.[0], { thought: true, text: /^r1 r2/ })
      t.equal(whole.usageMetadata?.thoughtsTokenCount, 8)
    })

    t.test('function calls', async t => {
      const config = {
        tools: [
          {
            functionDeclarations: [
              {
                name: 'look',
                parametersJsonSchema: { type: 'object', properties: { at: { type: 'string' } } },
              },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
      }
      const whole = await models.generateContent({ model: 'sim', contents: 'x', config })
      t.match(whole.functionCalls, [{ name: 'look', args: { at: 'w1' } }])
    })

    t.test('tokens and embeddings', async t => {
      t.equal((await models.countTokens({ model: 'sim', contents: '12345678' })).totalTokens, 2)
      const config = { outputDimensionality: 5 }
      const embedded = await models.embedContent({ model: 'sim', contents: ['a', 'b'], config })
      t.equal(embedded.embeddings?.length, 2)
      t.equal(embedded.embeddings?.[1]?.values?.length, 5)
    })

    t.test('models', async t => {
      t.equal((await models.get({ model: 'any' })).name, 'models/any')
      const names: (string | undefined)[] = []
      for await (const model of await models.list()) names.push(model.name)
      t.ok(names.includes('models/sim'))
    })

    t.test('an error has the error class of the client, and the status', async t => {
      for (const status of [400, 401, 403, 404]) {
        const asked = models.generateContent({ model: `sim,status=${status}`, contents: 'x' })
        const error: unknown = await asked.catch((thrown: unknown) => thrown)
        t.ok(error instanceof Failure)
        t.match(error, { status })
      }
    })

    t.test('a stream that fails or is cut throws an error', async t => {
      for (const fault of ['error_event_after=2', 'close_after=2', 'reset_after=2']) {
        const read = async () => {
          for await (const chunk of await models.generateContentStream({
            model: `sim,${fault}`,
            contents: 'x',
          }))
            void chunk
        }
        await t.rejects(read(), fault)
      }
    })
  })
}
