import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks, priced } from '../books.ts'

t.test('creating a batch has an unknown cost, and reading or cancelling a batch is free', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => res.setHeader('content-type', 'application/json').end('{"id":"batch_1"}'))
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const { url } = books.gateway
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
  const ids = new Map<string, string>()
  const asked = async (what: string, request: { asResponse(): Promise<Response> }): Promise<void> => {
    const { headers } = await request.asResponse()
    ids.set(what, headers.get('x-gateway-request-id') ?? '')
  }
  const batch = { input_file_id: 'f', endpoint: '/v1/responses', completion_window: '24h' } as const
  const params = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'hello' }] }
  await asked('made', openai.batches.create(batch))
  const requests = [{ custom_id: '1', params }]
  await asked('made of messages', anthropic.messages.batches.create({ requests }))
  await asked('asked after', openai.batches.retrieve('batch_1'))
  await asked('listed', anthropic.get('/v1/messages/batches'))
  await asked('stopped', openai.batches.cancel('batch_1'))
  await asked('stopped of messages', anthropic.messages.batches.cancel('batch_1'))
  const rows = await books.drain()
  for (const [what, id] of ids) {
    t.match(rows.get(id), { status: 200, costPico: what.startsWith('made') ? null : 0n }, what)
  }
})

t.test('the cost of a request without a model is unknown', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => res.setHeader('content-type', 'application/json').end('{"id":"made"}'))
  })
  const books = await openBooks(t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]`)
  const client = new OpenAI({ baseURL: `${books.gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
  const file = new File(['bytes'], 'a.png', { type: 'image/png' })
  const { beta: { threads }, videos } = client
  const runs = [
    ['a picture', client.images.createVariation({ image: file })],
    ['a video', videos.create({ prompt: 'rain' })],
    ['a video of a video', videos.remix('video_1', { prompt: 'snow' })],
    ['a run', threads.runs.create('thread_1', { assistant_id: 'asst_1' })],
    ['a thread and its run', threads.createAndRun({ assistant_id: 'asst_1' })],
    ['a file', client.files.create({ file, purpose: 'batch' })],
    ['a thread', threads.create()],
    ['a video that is retrieved', videos.retrieve('video_1')],
  ] as const
  const free = new Set<string>(['a file', 'a thread', 'a video that is retrieved'])
  const ids = new Map<string, string>()
  for (const [what, request] of runs) {
    ids.set(what, (await request.asResponse()).headers.get('x-gateway-request-id') ?? '')
  }
  const rows = await books.drain()
  for (const [what, id] of ids) {
    t.match(rows.get(id), { endpoint: 'other', status: 200, costPico: free.has(what) ? 0n : null }, what)
  }
})
