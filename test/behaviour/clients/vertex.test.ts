import { GoogleGenAI } from '@google/genai'
import { GoogleGenAI as GoogleGenAI2 } from 'genai2'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { openBooks, priced } from '../billing/books.ts'
import { rejection } from './setup.ts'

/*
 * Vertex AI's clients call /v1beta1: with an API key alone (express mode), or for a project, where
 * the credential is a token.
 */

const NARROW = 'sk-narrow-0123456789abcdef'
const CLIENTS: [string, typeof GoogleGenAI][] = [
  ['@google/genai 3', GoogleGenAI],
  ['@google/genai 2', GoogleGenAI2 as unknown as typeof GoogleGenAI],
]
const USAGE = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 }
const ANSWER = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'x' }] }, finishReason: 'STOP' }],
  usageMetadata: USAGE,
}
const USED = { total_input_tokens: 7, total_output_tokens: 5, total_tokens: 12 }
const PROJECT = 'projects/p/locations/global'

/** A Google credential whose token is the gateway's key. */
function withToken(key: string) {
  return { getRequestHeaders: async () => new Headers({ Authorization: `Bearer ${key}` }) } as never
}

for (const [name, Client] of CLIENTS) {
  t.test(`${name} works as a client of Vertex AI`, async t => {
    const asked: string[] = []
    const upstream = await startUpstream(t, async (req, res) => {
      asked.push(`${req.method} ${req.url}`)
      t.equal(req.headers['x-goog-api-key'], 'vendor-key', 'only the credential of the operator is sent upstream')
      t.equal(req.headers.authorization, undefined)
      await bodyOf(req)
      const path = req.url as string
      if (path.includes('?alt=sse')) {
        res.setHeader('content-type', 'text/event-stream').end(`data: ${JSON.stringify(ANSWER)}\r\n\r\n`)
        return
      }
      const answer = path.endsWith(':countTokens') ? { totalTokens: 7 }
        : path.endsWith('/interactions') ? { id: 'i', status: 'completed', steps: [], usage: USED }
          : path.endsWith('Content') ? ANSWER : { name: `${PROJECT}/x/1`, state: 'JOB_STATE_PENDING' }
      res.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    })
    const books = await openBooks(t, `
upstreams: { vertex: { url: "${upstream.url}", auth: { header: x-goog-api-key, value: vendor-key } } }
routes: [{ model: fast, to: { upstream: vertex, model: m } }, { path: /v1beta1/*, to: vertex }]
keys: [{ name: any, key: ${KEY} }, { name: narrow, key: ${NARROW}, models: [fast] }]
${priced('m')}`)
    const baseUrl = books.gateway.url
    const express = (apiKey: string) => new Client({ vertexai: true, apiKey, httpOptions: { baseUrl } })
    const projects = (key: string) => new Client({
      vertexai: true,
      project: 'p',
      location: 'global',
      googleAuthOptions: { authClient: withToken(key) },
      httpOptions: { baseUrl },
    })

    for (const [mode, connect, prefix] of [
      ['express mode', express, '/v1beta1'], ['with a project', projects, `/v1beta1/${PROJECT}`],
    ] as const) {
      await t.test(`${mode}: requests reach the paths of Vertex AI`, async t => {
        asked.length = 0
        const { models, batches, caches } = connect(KEY)
        t.equal((await models.generateContent({ model: 'm', contents: 'hello' })).text, 'x')
        let text = ''
        for await (const chunk of await models.generateContentStream({ model: 'fast', contents: 'hello' })) {
          text += chunk.text ?? ''
        }
        t.equal(text, 'x')
        t.equal((await models.countTokens({ model: 'm', contents: 'hello' })).totalTokens, 7)
        t.ok((await caches.create({ model: 'm', config: { contents: 'hello' } })).name)
        t.ok((await batches.create({ model: 'm', src: 'gs://b/i', config: { dest: 'gs://b/o' } })).name)
        t.strictSame(asked, [
          `POST ${prefix}/publishers/google/models/m:generateContent`,
          `POST ${prefix}/publishers/google/models/m:streamGenerateContent?alt=sse`,
          `POST ${prefix}/publishers/google/models/m:countTokens`,
          `POST ${prefix}/cachedContents`,
          `POST ${prefix}/batchPredictionJobs`,
        ])
      })

      await t.test(`${mode}: a key limited to some models cannot use other models`, async t => {
        asked.length = 0
        const { models } = connect(NARROW)
        t.equal((await models.generateContent({ model: 'fast', contents: 'hello' })).text, 'x')
        for (const model of ['m', 'publishers/google/models/m', 'publishers/google/models/M;fast']) {
          const refused = await rejection(t, models.generateContent({ model, contents: 'x' }), model)
          t.match(refused, { name: 'ApiError', status: 403, message: /PERMISSION_DENIED/ }, model)
        }
        t.strictSame(asked, [`POST ${prefix}/publishers/google/models/m:generateContent`])
      })
    }

    for (const connect of [express, projects]) {
      await connect(KEY).interactions.create({ model: 'm', input: 'hello' })
      t.match(asked.at(-1), /^POST \/v1beta1\/(projects\/p\/locations\/global\/)?interactions$/)
    }

    const rows = [...(await books.drain()).values()].filter(({ status }) => status === 200)
    const metered = rows.filter(({ endpoint }) => /content|stream|interactions/.test(String(endpoint)))
    t.equal(metered.length, 8)
    for (const { endpoint, protocol, usage, costPico } of metered) {
      const { inputTokens, outputTokens } = usage
      t.strictSame([protocol, inputTokens, outputTokens], ['generate', 7, 5], `${endpoint}`)
      t.ok(costPico! > 0n)
    }
  })
}
