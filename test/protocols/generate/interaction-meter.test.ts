import t from 'tap'
import { interaction } from '../../pricing/recordings.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced, usedIn } from '../../behaviour/billing/books.ts'

const USAGE = { total_input_tokens: 62, total_output_tokens: 171, total_thought_tokens: 297, total_tokens: 530 }
const USED = { input: 62, output: 468, reasoning: 297 }
const { events } = interaction

t.test('an interaction is billed by its reported usage, and a cut interaction by its received text', async t => {
  const upstream = await startUpstream(t, async (req, res) => {
    const { input, stream } = JSON.parse(String(await bodyOf(req))) as { input: string; stream?: boolean }
    if (!stream) {
      const status = input === 'later' ? 'in_progress' : 'completed'
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ id: 'v1_1', status, steps: [], ...status === 'completed' && { usage: USAGE } }))
      return
    }
    res.setHeader('content-type', 'text/event-stream')
    if (input === 'whole') res.end(`${events.join('')}event: done\ndata: [DONE]\n\n`)
    else res.write(events.slice(0, 6).join(''), () => res.destroy())
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
${priced('m')}`)
  const ask = async (path: string, body: object) => {
    const got = await fetch(books.gateway.url + path, {
      method: 'POST',
      headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', ...body }),
    })
    const text = await got.text().catch(() => 'cut')
    return { id: got.headers.get('x-gateway-request-id') ?? '', text }
  }
  const plain = await ask('/v1/interactions', { input: 'whole' })
  const whole = await ask('/v1beta/interactions', { input: 'whole', stream: true })
  const cut = await ask('/v1beta/interactions', { input: 'cut it', stream: true })
  const later = await ask('/v1beta/interactions', { input: 'later', background: true })
  t.equal(whole.text, `${events.join('')}event: done\ndata: [DONE]\n\n`, 'the stream is forwarded unchanged')

  const rows = await books.drain()
  for (const [what, { id }] of [['plain', plain], ['a stream', whole]] as const) {
    const row = rows.get(id)!
    t.match(row, { endpoint: 'interactions', protocol: 'generate', end: 'complete', source: 'reported' }, what)
    t.match(usedIn(row), USED, what)
    t.equal(row.costPico, costOf(USED), what)
  }
  const row = rows.get(cut.id)!
  t.match(row, { end: 'upstream_cut', source: 'estimated' })
  t.ok(row.usage.outputTokens! >= 5 && row.usage.outputTokens! < 20, 'the thoughts and the text')
  t.ok(row.usage.reasoningTokens! > 0)
  t.equal(row.costPico, costOf(usedIn(row)))
  t.match(rows.get(later.id), { end: 'complete', costPico: null }, 'later output is unknown')
})

t.test('a cut interaction ends with an error event that clients understand', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.setHeader('content-type', 'text/event-stream')
    res.write(events.slice(0, 2).join(''), () => res.destroy())
  })
  const { gateway } = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]`)
  const got = await fetch(`${gateway.url}/v1beta/interactions`, {
    method: 'POST',
    headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', input: 'hello', stream: true }),
  })
  let text = ''
  await t.rejects(async () => {
    for await (const chunk of got.body!) text += Buffer.from(chunk).toString()
  }, 'it does not end as if it were whole')
  const last = text.slice(events.slice(0, 2).join('').length)
  t.match(last, /^event: error\ndata: \{.*\}\n\n$/)
  t.match(JSON.parse(last.slice(last.indexOf('{'))), { event_type: 'error', error: { code: 'upstream_cut' } })
})

t.test('an agent is named, allowed, renamed and billed like a model', async t => {
  const asked: unknown[] = []
  const upstream = await startUpstream(t, async (req, res) => {
    asked.push(JSON.parse(String(await bodyOf(req))))
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ id: 'v1_1', status: 'completed', steps: [], usage: USAGE }))
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: deep, to: { upstream: up, model: m } }, { model: [m, other], to: up }]
keys: [{ name: some, key: ${KEY}, models: [deep, m] }]
${priced('m')}`)
  const ask = async (named: object) => {
    const got = await fetch(`${books.gateway.url}/v1beta/interactions`, {
      method: 'POST',
      headers: { 'x-goog-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ ...named, input: 'x' }),
    })
    await got.text()
    return [got.status, got.headers.get('x-gateway-request-id')] as const
  }
  const [status, id] = await ask({ model: null, agent: 'deep' })
  t.equal(status, 200)
  for (const [named, status] of [
    [{ agent: 'm' }, 200], [{ agent: null, model: 'm' }, 200], [{ agent: 'm', model: 'm' }, 200],
    [{ agent: 'other' }, 403], [{ agent: 'other', model: 'm' }, 400], [{ agent: 'm', model: 'other' }, 400],
    [{ agent: {} }, 400], [{}, 403],
  ] as const) t.equal((await ask(named))[0], status, JSON.stringify(named))
  t.strictSame(asked, [
    { model: null, agent: 'm', input: 'x' },
    { agent: 'm', input: 'x' },
    { agent: null, model: 'm', input: 'x' },
    { agent: 'm', model: 'm', input: 'x' },
  ])
  const row = (await books.drain()).get(id!)
  t.match(row, { model: 'deep', upstreamModel: 'm', costPico: costOf(USED) })
})
