import t from 'tap'
import { gateway as run } from '../../cli/command.ts'
import { start } from '../../simulator/start.ts'
import { anthropicClient, openaiClient } from '../../support/translating-gateway.ts'
import { openBooks } from '../billing/books.ts'

const QUESTION = { model: 'm', max_tokens: 100, top_k: 5, messages: [{ role: 'user' as const, content: 'Hi' }] }

t.test('the ledger has the protocols of client and upstream, and the dropped fields of each attempt', async t => {
  const { url } = await start(t)
  const books = await openBooks(t, `
upstreams:
  claude: { url: "${url}", speaks: [messages] }
  vllm: { url: "${url}", speaks: [chat] }
routes:
  - to: [{ upstream: claude, model: "sim,status=503" }, { upstream: vllm, model: sim }]
    retries: 1`)
  const { response } = await anthropicClient(books.gateway).messages.create(QUESTION).withResponse()
  t.equal(response.headers.get('x-gateway-dropped'), 'top_k')
  const id = response.headers.get('x-gateway-request-id') as string
  const row = (await books.close()).get(id)
  t.match(row, { protocol: 'messages', upstream: 'vllm', upstreamProtocol: 'chat' })
  t.match(row?.attempts, [
    { upstream: 'claude', status: 503, translated: undefined, dropped: undefined },
    { upstream: 'vllm', status: 200, translated: 'messages->chat', dropped: ['top_k'] },
  ])
  const config = books.gateway.file
  const { stdout: rows } = await run(['usage', '--config', config, '--json'])
  t.match(JSON.parse(rows), { protocol: 'messages', upstream_protocol: 'chat' })
  const { stdout: story } = await run(['usage', '--config', config, '--request', id])
  t.match(story, /attempt 2: vllm, model sim, translated messages->chat without top_k: ok/)
})

t.test('the ledger distinguishes the protocols chat and responses', async t => {
  const { url } = await start(t)
  const books = await openBooks(t, `
upstreams: { vllm: { url: "${url}", speaks: [chat] }, openai: { url: "${url}", speaks: [responses] } }
routes: [{ model: near, to: { upstream: openai, model: sim } }, { to: { upstream: vllm, model: sim } }]`)
  const client = openaiClient(books.gateway)
  await client.responses.create({ model: 'far', input: 'Hi' })
  await client.responses.create({ model: 'near', input: 'Hi' })
  await client.chat.completions.create({ model: 'near', messages: [{ role: 'user', content: 'Hi' }] })
  const rows = [...(await books.close()).values()]
  t.strictSame(rows.map(({ protocol, upstreamProtocol }) => [protocol, upstreamProtocol]), [
    ['responses', 'chat'], ['responses', 'responses'], ['chat', 'responses'],
  ])
})

t.test('the ledger truncates the names of dropped fields', async t => {
  const { url } = await start(t)
  const books = await openBooks(t, `upstreams: { vllm: { url: "${url}", speaks: [chat] } }\nroutes: [{ to: [{ upstream: vllm, model: sim }] }]`)
  await anthropicClient(books.gateway).messages.create({ ...QUESTION, ['x'.repeat(50_000)]: 1 } as typeof QUESTION)
  const [row] = [...(await books.close()).values()]
  t.match(row?.attempts[0]?.dropped, ['top_k', /^x{100}$/])
})
