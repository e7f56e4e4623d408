import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced, usedIn } from './books.ts'

/*
 * Hundreds of requests of each kind to an upstream that records the expected
 * usage: the ledger must have the same figures for each request and in sum.
 */

const ROUNDS = 40

interface Figures {
  readonly fresh: number
  readonly cached: number
  readonly write: number
  readonly writeHour: number
  readonly said: number
  readonly reasoning: number
}

interface Kind {
  readonly path: string
  readonly stream: boolean
  /** The figures that the protocol can report. */
  tell(figures: Figures): Figures
  answer(figures: Figures): unknown
}

const NO_CACHE_WRITES = { write: 0, writeHour: 0 }

function chatUsage({ fresh, cached, said, reasoning }: Figures) {
  return {
    prompt_tokens: fresh + cached,
    completion_tokens: said + reasoning,
    total_tokens: fresh + cached + said + reasoning,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}

function responsesUsage({ fresh, cached, said, reasoning }: Figures) {
  return {
    input_tokens: fresh + cached,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: said + reasoning,
    output_tokens_details: { reasoning_tokens: reasoning },
  }
}

function messagesUsage({ fresh, cached, write, writeHour, said }: Figures) {
  return {
    input_tokens: fresh,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: write + writeHour,
    cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: writeHour },
    output_tokens: said,
  }
}

function generateUsage({ fresh, cached, said, reasoning }: Figures) {
  return {
    promptTokenCount: fresh + cached,
    cachedContentTokenCount: cached,
    candidatesTokenCount: said,
    thoughtsTokenCount: reasoning,
    totalTokenCount: fresh + cached + said + reasoning,
  }
}

const withoutWrites = (figures: Figures): Figures => ({ ...figures, ...NO_CACHE_WRITES })
const withoutReasoning = (figures: Figures): Figures => ({ ...figures, reasoning: 0 })
const onlyInput = ({ fresh }: Figures): Figures =>
  ({ fresh, cached: 0, ...NO_CACHE_WRITES, said: 0, reasoning: 0 })

const CANDIDATE = { content: { parts: [{ text: 'hi' }] }, finishReason: 'STOP', index: 0 }

const KINDS: Record<string, Kind> = {
  'chat': {
    path: '/v1/chat/completions',
    stream: false,
    tell: withoutWrites,
    answer: figures => ({ choices: [{ message: { content: 'hi' } }], usage: chatUsage(figures) }),
  },
  'chat stream': {
    path: '/v1/chat/completions',
    stream: true,
    tell: withoutWrites,
    answer: figures => [
      { choices: [{ index: 0, delta: { content: 'hi' } }], usage: null },
      { choices: [], usage: chatUsage(figures) },
      '[DONE]',
    ],
  },
  'responses': {
    path: '/v1/responses',
    stream: false,
    tell: withoutWrites,
    answer: figures => ({ object: 'response', output: [], usage: responsesUsage(figures) }),
  },
  'compaction': {
    path: '/v1/responses/compact',
    stream: false,
    tell: withoutWrites,
    answer: figures => ({ object: 'response.compaction', output: [], usage: responsesUsage(figures) }),
  },
  'decisions': {
    path: '/v1/decisions',
    stream: false,
    tell: withoutWrites,
    answer: figures => ({ answers: [{ type: 'predicate', probability: 0.9 }], usage: responsesUsage(figures) }),
  },
  'responses stream': {
    path: '/v1/responses',
    stream: true,
    tell: withoutWrites,
    answer: figures => [
      { type: 'response.output_text.delta', output_index: 0, delta: 'hi' },
      { type: 'response.completed', response: { usage: responsesUsage(figures) } },
    ],
  },
  'messages': {
    path: '/v1/messages',
    stream: false,
    tell: withoutReasoning,
    answer: figures => ({
      type: 'message', content: [{ type: 'text', text: 'hi' }], usage: messagesUsage(figures),
    }),
  },
  'messages stream': {
    path: '/v1/messages',
    stream: true,
    tell: withoutReasoning,
    answer: figures => [
      { type: 'message_start', message: { usage: { ...messagesUsage(figures), output_tokens: 1 } } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: figures.said } },
      { type: 'message_stop' },
    ],
  },
  'generate': {
    path: '/v1beta/models/m:generateContent',
    stream: false,
    tell: withoutWrites,
    answer: figures => ({ candidates: [CANDIDATE], usageMetadata: generateUsage(figures) }),
  },
  'generate stream': {
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    stream: true,
    tell: withoutWrites,
    answer: figures => [{ candidates: [CANDIDATE], usageMetadata: generateUsage(figures) }],
  },
  'embeddings': {
    path: '/v1/embeddings',
    stream: false,
    tell: onlyInput,
    answer: ({ fresh }) => ({ data: [], usage: { prompt_tokens: fresh, total_tokens: fresh } }),
  },
}

/** Responses that cost nothing, whatever usage they report. */
const FREE: Record<string, { status: number; body: unknown }> = {
  'a 400 with usage': {
    status: 400, body: { error: { message: 'no' }, usage: { prompt_tokens: 9, completion_tokens: 9 } },
  },
  'a 429': { status: 429, body: { error: { message: 'slow down' } } },
  'a 500 in JSON': { status: 500, body: { error: { message: 'oops' } } },
  'a 503 that is no JSON': { status: 503, body: 'busy' },
}

/** Figures that follow from `n`; some are zero. */
function figuresOf(n: number): Figures {
  const figure = (factor: number, every: number): number => (n % every === 0 ? 0 : (n * factor) % 5003)
  return {
    fresh: figure(17, 5), cached: figure(31, 3), write: figure(7, 4), writeHour: figure(11, 2),
    said: figure(13, 7), reasoning: figure(19, 6),
  }
}

function send(res: ServerResponse, answer: unknown, stream: boolean): void {
  if (!stream) {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    return
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of answer as unknown[]) {
    res.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
  }
  res.end()
}

function bodyFor({ path, stream }: Kind): string {
  const messages = [{ role: 'user', content: 'hello' }]
  if (path.startsWith('/v1beta')) return JSON.stringify({ contents: [{ parts: [{ text: 'hello' }] }] })
  return JSON.stringify({ model: 'm', stream, messages, input: 'hello', max_tokens: 10 })
}

t.test('the total usage in the ledger equals the total usage that the upstream reported', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      const free = FREE[String(req.headers['x-free'])]
      if (free) {
        res.writeHead(free.status, { 'content-type': 'application/json' })
        res.end(typeof free.body === 'string' ? free.body : JSON.stringify(free.body))
        return
      }
      const kind = KINDS[String(req.headers['x-kind'])] as Kind
      send(res, kind.answer(figuresOf(Number(req.headers['x-n']))), kind.stream)
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ model: m, to: up }]
${priced('m')}`)
  const wanted = new Map<string, Figures | null>()
  const ask = async (path: string, body: string, headers: Record<string, string>): Promise<string> => {
    const answer = await fetch(books.gateway.url + path, {
      method: 'POST',
      body,
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    })
    await answer.text()
    return answer.headers.get('x-gateway-request-id') ?? ''
  }
  for (let n = 0; n < ROUNDS; n++) {
    const asked = Object.entries(KINDS).map(async ([name, kind]) => {
      const id = await ask(kind.path, bodyFor(kind), { 'x-kind': name, 'x-n': String(n) })
      wanted.set(id, kind.tell(figuresOf(n)))
    })
    const refused = [{}, { authorization: 'Bearer wrong' }].map(async headers => {
      wanted.set(
        await ask('/v1/chat/completions', n % 2 ? '{' : '{"model":"other","messages":[]}', headers), null,
      )
    })
    const free = Object.keys(FREE).map(async name => {
      const kind = Object.values(KINDS)[n % 9] as Kind
      wanted.set(await ask(kind.path, bodyFor(kind), { 'x-free': name }), null)
    })
    await Promise.all([...asked, ...refused, ...free])
  }
  const rows = await books.drain()
  t.equal(rows.size, ROUNDS * (Object.keys(KINDS).length + 2 + Object.keys(FREE).length))
  const wrong: unknown[] = []
  let sum = 0n
  for (const [id, figures] of wanted) {
    const row = rows.get(id) as LedgerRow
    const { fresh, cached, write, writeHour, said, reasoning } = figures
      ?? onlyInput({ ...figuresOf(0), fresh: 0 })
    const [input, output] = [fresh + cached + write + writeHour, said + reasoning]
    const used = { input, output, cached, write, writeHour, reasoning }
    const cost = costOf(used)
    sum += cost
    const same = JSON.stringify(usedIn(row)) === JSON.stringify(used) && row.costPico === cost
      && row.source === (figures ? 'reported' : 'none') && (row.end === 'complete') === (figures !== null)
    if (!same) wrong.push({ used, cost, row })
  }
  t.strictSame(wrong.slice(0, 3), [], `${wrong.length} rows differ`)
  t.equal([...rows.values()].reduce((total, { costPico }) => total + (costPico ?? 0n), 0n), sum)
})

t.test('usage that cannot be true, such as -5 tokens, is replaced by estimates', async t => {
  const nonsense = [-5, 1e21, '250', 1.5, null, undefined, {}, []]
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      const value = nonsense[Number(req.headers['x-n'])]
      const usage = { prompt_tokens: value, completion_tokens: value, total_tokens: value }
      const stream = req.headers['x-stream'] === 'yes'
      const choice = {
        index: 0, [stream ? 'delta' : 'message']: { role: 'assistant', content: 'hello there' },
      }
      send(
        res,
        stream ? [{ choices: [choice] }, { choices: [], usage }, '[DONE]'] : { choices: [choice], usage },
        stream,
      )
    })
  })
  const books = await openBooks(
    t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n${priced('m')}`,
  )
  for (const n of nonsense.keys()) {
    for (const stream of [false, true]) {
      await (await fetch(`${books.gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hello' }] }),
        headers: {
          'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'x-n': String(n),
          'x-stream': stream ? 'yes' : 'no',
        },
      })).text()
    }
  }
  const rows = [...(await books.drain()).values()]
  t.equal(rows.length, nonsense.length * 2)
  for (const row of rows) {
    // One token in `hello`, 4 for its message and 3 for the response's beginning; two in `hello there`.
    t.match(row, { end: 'complete', source: 'estimated', usage: { inputTokens: 8, outputTokens: 2 } })
    t.equal(row.costPico, costOf({ input: 8, output: 2 }))
  }
})
