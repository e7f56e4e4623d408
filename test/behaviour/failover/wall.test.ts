import t from 'tap'
import { costOf, openBooks, priced } from '../billing/books.ts'
import { DIALECTS } from './asking.ts'
import { call } from './wall-clients.ts'
import { ANSWER, startWall } from './wall.ts'

/** One of the sixteen scenarios of the Failover Bench, with the expected result. */
interface Scenario {
  readonly model: string
  /** The target that responds in the end: the failing target, the fallback, both or none. */
  readonly by: 'primary' | 'fallback' | 'both' | 'nobody'
  /** Number of requests to the failing target. */
  readonly asked: number
  /** Minimum time between the first two attempts at the failing target, ms. */
  readonly gap?: number
  /** For a stream: both targets get the request, because the failing target is silent. */
  readonly hedged?: true
  /** The result of a whole response, if it differs from that of a stream. */
  readonly whole?: Pick<Scenario, 'by'>
}

const SCENARIOS: readonly Scenario[] = [
  { model: 'fb-s01-429-retry-after', by: 'primary', asked: 2, gap: 1_000 },
  { model: 'fb-s02-429-persistent', by: 'fallback', asked: 1 },
  { model: 'fb-s03-500-then-200', by: 'primary', asked: 2 },
  { model: 'fb-s04-503-persistent', by: 'fallback', asked: 1 },
  { model: 'fb-s05-reset', by: 'fallback', asked: 1 },
  { model: 'fb-s06-no-response', by: 'fallback', asked: 1, hedged: true },
  { model: 'fb-s07-slow-ttft', by: 'fallback', asked: 1, hedged: true },
  { model: 'fb-s08-stream-cut', by: 'both', asked: 1, whole: { by: 'fallback' } },
  { model: 'fb-s09-stream-stall', by: 'both', asked: 1, whole: { by: 'fallback' } },
  { model: 'fb-s10-malformed-chunk', by: 'both', asked: 1, whole: { by: 'fallback' } },
  { model: 'fb-s11-no-done', by: 'primary', asked: 1 },
  { model: 'fb-s12-context-length', by: 'fallback', asked: 1 },
  { model: 'fb-s13-content-filter', by: 'nobody', asked: 1 },
  { model: 'fb-s14-stream-cut', by: 'fallback', asked: 1 },
  { model: 'fb-s16-503-persistent', by: 'fallback', asked: 1 },
]
const FLAP = 'fb-s15-flap'

/** Two retries and one fallback, the limit of the bench for all gateways. */
function configuration(url: string): string {
  return `
upstreams: { wall: { url: "${url}" } }
timeouts: { first_byte: 4s, idle: 3s }
routes:
  - model: fb-s14-*
    to: [wall, { upstream: wall, model: fb-ok-noprefill }]
    retries: 2
    hedge: { after: 3s }
    resume: continue_or_hold
  - model: fb-s*
    to: [wall, { upstream: wall, model: fb-ok, prefill: true }]
    retries: 2
    hedge: { after: 3s }
    resume: continue_or_hold
    on: { context_length: { upstream: wall, model: fb-ok } }
${priced(...SCENARIOS.map(({ model }) => model), FLAP, 'fb-ok', 'fb-ok-noprefill')}`
}

for (const { name } of DIALECTS) {
  for (const stream of [true, false]) {
    t.test(`requests with every fault scenario run at once: ${name}, ${stream ? 'streamed' : 'whole'}`, async t => {
      const wall = await startWall(t)
      const books = await openBooks(t, configuration(wall.url))
      const calls = SCENARIOS.map(({ model }) => call(books.gateway.url, name, model, stream))
      const outcomes = await Promise.all(calls)
      const rows = [...(await books.close()).values()]
      for (const [index, scenario] of SCENARIOS.entries()) {
        const { model, asked, gap = 0 } = scenario
        const by = stream ? scenario.by : scenario.whole?.by ?? scenario.by
        const [outcome, row] = [outcomes[index], rows.find(each => each.model === model)]
        const fallback = model.startsWith('fb-s14') ? 'fb-ok-noprefill' : 'fb-ok'
        const seen = wall.seen.filter(each => each.model === model)
        t.test(model, t => {
          t.equal(outcome?.text, by === 'nobody' ? null : ANSWER, outcome?.error ?? '')
          t.equal(seen.length, asked)
          t.ok((seen[1]?.at ?? Infinity) - (seen[0]?.at ?? 0) >= gap)
          t.equal(row?.attempts.length, asked + (by === 'fallback' || by === 'both' ? 1 : 0))
          switch (by) {
            case 'nobody':
              t.equal(row?.costPico, 0n)
              t.match(outcome?.error, /content_policy_violation/, 'the error text of the provider')
              break
            case 'both':
              // The stream of the client keeps its first model name, and the output of both targets is counted.
              t.match(outcome, { model })
              t.ok((outcome?.outputTokens ?? 0) > 60)
              t.ok((row?.usage.outputTokens ?? 0) > 60)
              break
            default:
              t.match(outcome, { model: by === 'primary' ? model : fallback, outputTokens: 60 })
              if (scenario.hedged && stream) {
                const { inputTokens } = row?.usage ?? {}
                t.ok((inputTokens ?? 0) > 20, 'the prompt of the cancelled attempt counts')
                t.match(row, { usage: { outputTokens: 60 }, attempts: [{ outcome: 'hedge_lost' }, { outcome: 'ok' }] })
                t.equal(row?.costPico, costOf({ input: inputTokens ?? 0, output: 60 }))
                break
              }
              t.match(row, { usage: { inputTokens: 20, outputTokens: 60 } })
              t.equal(row?.costPico, costOf({ input: 20, output: 60 }), 'one response is billed once')
          }
          t.end()
        })
      }
      t.equal(rows.length, SCENARIOS.length)
      t.equal(wall.seen.filter(each => each.model === 'fb-ok-noprefill' && each.prefill).length, 0)
    })

    t.test(`requests are served during and after an outage of a provider: ${name}, ${stream ? 'streamed' : 'whole'}`, async t => {
      const wall = await startWall(t)
      const books = await openBooks(t, configuration(wall.url))
      const began = performance.now()
      let served = ''
      let requests = 0
      for (; served !== FLAP && performance.now() - began < 30_000; requests++) {
        const outcome = await call(books.gateway.url, name, FLAP, stream)
        t.equal(outcome.text, ANSWER, outcome.error ?? '')
        served = outcome.model ?? ''
      }
      t.equal(served, FLAP, 'the provider gets requests again')
      const refused = wall.seen.filter(each => each.model === FLAP && !each.served).length
      // Three failures open the circuit; then at most one probe per half second is sent.
      t.ok(refused <= 3 + wall.times.down / 500, `${refused} of ${requests} requests met the outage`)
    })
  }
}
