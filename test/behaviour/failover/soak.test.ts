import t from 'tap'
import { start } from '../../simulator/start.ts'
import { CONSOLE, operatorOf } from '../../support/operator.ts'
import { openBooks, priced } from '../billing/books.ts'
import { DIALECTS, WORDS, ask } from './asking.ts'
import type { Asked, Dialect } from './asking.ts'

const FAULTS = [
  '', '', '', 'status=503', 'status=429,retry_after_ms=20',
  'status=401', 'status=400', 'reset', 'close', 'error_200',
  'first_event_error', 'close_after=0', 'close_after=3',
  'reset_after=7', 'cut_after=6', 'error_event_after=5',
  'stall_after=4', 'headers_delay=2s', 'first_delay=2s',
  'malformed_after=0', 'no_terminator', 'split=9', 'comments,split=13',
  'tool_call,close_after=2', 'reject_prefill', 'gzip', 'usage=huge', 'tokens=16,pace=5ms',
]
const REQUESTS = 400
const AT_ONCE = 20

/** Pseudo-random numbers, the same for the same seed. */
function dice(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/**
 * A whole response, an error, or a part of a response that cannot be taken for all of it: nothing else may come.
 */
function isHonest(dialect: Dialect, stream: boolean, { status, whole, text, body }: Asked): boolean {
  // A compressed response that was not requested; the gateway forwards it unread.
  const isPacked = body.startsWith('\u001f')
  if (!whole || isPacked) return true
  if (status >= 400) return body.length > 0
  if (body.includes('"error"')) return true
  if (!stream) return text === WORDS || /tool|functionCall/.test(body)
  return dialect.tellsError(body)
    || (dialect.isWhole(body) && (text === WORDS || /tool|functionCall/.test(body)))
}

t.test('with random faults, each request gets a response or a clear error, and is in the ledger once', async t => {
  const { url } = await start(t)
  const seed = Date.now() % 1_000_000
  t.comment(`seed ${seed}`)
  const roll = dice(seed)
  const routes: string[] = []
  for (const resume of ['off', 'continue', 'hold']) {
    for (let n = 0; n < 12; n++) {
      const targets = ['a', 'b', 'c'].slice(0, 1 + roll(3)).map(upstream => {
        const fault = FAULTS[roll(FAULTS.length)]
        return `{ upstream: ${upstream}, model: "sim${fault ? `,${fault}` : ''}", prefill: ${roll(2) === 0} }`
      })
      const strategy = ['ordered', 'weighted', 'least_busy', 'fastest'][roll(4)]
      const more = `strategy: ${strategy}, resume: ${resume}, retries: ${roll(4)}, on: { context_length: a }`
      routes.push(`  - { model: "${resume}-${n}", to: [${targets.join(', ')}], ${more} }`)
    }
  }
  const books = await openBooks(t, `
${CONSOLE}
timeouts: { first_byte: 300ms, idle: 300ms, total: 5s }
upstreams: { a: { url: "${url}" }, b: { url: "${url}" }, c: { url: "${url}" } }
routes:
${routes.join('\n')}
${priced('sim')}`)
  const { gateway } = books

  let asked = 0
  const one = async (): Promise<void> => {
    while (asked < REQUESTS) {
      asked++
      const dialect = DIALECTS[roll(3)] as Dialect
      const stream = roll(3) > 0
      const model = `${['off', 'continue', 'hold'][roll(3)]}-${roll(12)}`
      const leaves = roll(10) === 0 ? AbortSignal.timeout(roll(60)) : undefined
      try {
        const answer = await ask(gateway, dialect, { model, stream, ...leaves ? { signal: leaves } : {} })
        if (!leaves && !isHonest(dialect, stream, answer)) {
          t.fail(
            `${dialect.name} ${model} ${stream}: ${answer.status} ${answer.whole} ${answer.body.slice(-400)}`,
          )
        }
      } catch (error) {
        if (!leaves) t.fail(`${dialect.name} ${model} ${stream}: ${String(error)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))

  const operatorStatus = await operatorOf(gateway.addresses.console)
  const status = async () => {
    const { running, upstreams } = await operatorStatus()
    return { running, inFlight: upstreams.reduce((sum, each) => sum + each.in_flight, 0) }
  }
  let last = await status()
  for (let n = 0; n < 500 && last.running > 0; n++) last = await status()
  t.strictSame(last, { running: 0, inFlight: 0 }, 'no request is running')
  t.equal(gateway.logged.filter(line => line.error === 'internal').length, 0)
  const rows = [...(await books.close()).values()]
  const ended = new Map(
    gateway.logged.filter(line => line.msg === 'exchange').map(line => [line.request, line]),
  )
  t.ok(ended.size >= REQUESTS * 0.9)
  t.equal(rows.length, ended.size)
  for (const row of rows) {
    if (row.end === 'interrupted') t.fail(`${row.requestId} was never closed`)
    const isPaid = row.costPico === null || row.costPico > 0n
    if (isPaid && !row.attempts.some(({ status }) => status === 200) && row.end !== 'client_gone') {
      t.fail(`paid for nothing: ${JSON.stringify(row.attempts)}`)
    }
  }
})
