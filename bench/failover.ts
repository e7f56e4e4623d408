/**
 * The sixteen faults of the Failover Bench (methodology 0.1) at its own times, judged by its checks, for streams of
 * chat completions: with the configuration that docs/failover.md has for it, and with the same without `hedge`.
 *
 *   node bench/failover.ts
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call } from '../test/behaviour/failover/wall-clients.ts'
import { ANSWER, startWall } from '../test/behaviour/failover/wall.ts'
import type { WallTimes } from '../test/behaviour/failover/wall.ts'
import { KEY } from '../test/support/gateway.ts'
import { printTable } from './lib/figures.ts'
import { pause, startConfigured } from './lib/subjects.ts'

/** The profile `full` of the bench. */
const TIMES: WallTimes = { retryAfter: 2, slowFirst: 20_000, stall: 30_000, silence: 120_000, down: 60_000, perWord: 15 }

interface Result {
  readonly text: string | null
  readonly model: string | null
  readonly outputTokens: number | null
  readonly seconds: number
  /** When the primary was asked, in seconds. */
  readonly primary: readonly number[]
}

interface Scenario {
  readonly model: string
  /** Seconds in which the client has to have the response. */
  readonly within: number
  readonly check?: (result: Result) => boolean
  /** The ideal is an error. */
  readonly error?: true
}

const SCENARIOS: readonly Scenario[] = [
  { model: 'fb-s01-429-retry-after', within: 20, check: ({ primary: [a = 0, b = 0] }) => b - a >= 1.8 },
  { model: 'fb-s02-429-persistent', within: 40, check: ({ primary }) => primary.length <= 4 },
  { model: 'fb-s03-500-then-200', within: 20, check: ({ primary }) => primary.length >= 2 },
  { model: 'fb-s04-503-persistent', within: 40, check: ({ primary }) => primary.length <= 6 },
  { model: 'fb-s05-reset', within: 20 },
  { model: 'fb-s06-no-response', within: 100, check: ({ primary }) => primary.length === 1 },
  { model: 'fb-s07-slow-ttft', within: 15 },
  { model: 'fb-s08-stream-cut', within: 40 },
  { model: 'fb-s09-stream-stall', within: 45 },
  { model: 'fb-s10-malformed-chunk', within: 30 },
  { model: 'fb-s11-no-done', within: 8, check: ({ outputTokens }) => outputTokens !== null },
  { model: 'fb-s12-context-length', within: 20, check: ({ primary }) => primary.length === 1 },
  { model: 'fb-s13-content-filter', within: 20, check: ({ primary }) => primary.length === 1, error: true },
  { model: 'fb-s14-stream-cut', within: 40 },
  {
    model: 'fb-s16-503-persistent', within: 40,
    check: ({ model, primary, outputTokens }) => model === 'fb-ok' && outputTokens !== null && primary.length <= 6,
  },
]

interface Verdict {
  readonly scenario: string
  readonly passes: boolean
  readonly figures: string
}

/** The first block of YAML behind the heading, with the addresses of this run. */
function documentedConfig(wall: string): string {
  const page = readFileSync(join(import.meta.dirname, '../docs/failover.md'), 'utf8')
  const [, yaml = ''] = /### Failover Bench\n[\s\S]*?```yaml\n([\s\S]*?)```/.exec(page) ?? []
  return yaml
    .replace('127.0.0.1:4000', '127.0.0.1:0')
    .replace('http://127.0.0.1:8401', wall)
    .replace('sk-failoverbench', KEY)
}

async function measure(edit: (yaml: string) => string): Promise<readonly Verdict[]> {
  const torn: (() => unknown)[] = []
  const wall = await startWall({ teardown: (end: () => unknown) => void torn.push(end) }, TIMES)
  const gateway = await startConfigured(edit(documentedConfig(wall.url)))
  const url = `http://127.0.0.1:${gateway.port}`

  const run = async ({ model, within, check = () => true, error }: Scenario): Promise<Verdict> => {
    const began = performance.now()
    const { text, model: served, outputTokens } = await call(url, 'chat', model, true)
    const seconds = (performance.now() - began) / 1000
    const primary = wall.seen.filter(each => each.model === model).map(({ at }) => at / 1000)
    const result: Result = { text, model: served ?? null, outputTokens: outputTokens ?? null, seconds, primary }
    const isIdeal = error ? text === null : text === ANSWER
    return {
      scenario: model, passes: isIdeal && seconds <= within && check(result),
      figures: `${seconds.toFixed(1)} s, ${primary.length} to the primary`,
    }
  }

  /** Twenty requests, four seconds apart; the primary is down for the first minute. */
  const flap = async (): Promise<Verdict> => {
    const began = performance.now()
    let served = 0
    for (let n = 0; n < 20; n++) {
      await pause(Math.max(0, began + n * 4_000 - performance.now()))
      const { text } = await call(url, 'chat', 'fb-s15-flap', true)
      if (text === ANSWER) served++
    }
    const seen = wall.seen.filter(({ model }) => model === 'fb-s15-flap')
    const first = seen[0]?.at ?? 0
    const back = ((seen.find(each => each.served)?.at ?? Infinity) - first - TIMES.down) / 1000
    const met = seen.filter(each => !each.served).length
    return {
      scenario: 'fb-s15-flap', passes: served === 20 && back <= 30,
      figures: `${served} of 20 answered, back after ${back.toFixed(1)} s, ${met} to the primary while it was down`,
    }
  }

  const verdicts = await Promise.all([...SCENARIOS.map(run), flap()])
  gateway.stop()
  for (const end of torn) await end()
  return verdicts.toSorted((a, b) => a.scenario.localeCompare(b.scenario))
}

const hedged = await measure(yaml => yaml)
const plain = await measure(yaml => yaml.replaceAll(/^ *hedge: .*\n/gm, ''))
const word = (passes: boolean) => (passes ? 'pass' : 'no')
printTable(['', 'hedge', '', 'without', ''], hedged.map(({ scenario, passes, figures }, n) => {
  const other = plain[n] as Verdict
  return [scenario, word(passes), figures, word(other.passes), other.figures]
}))
const count = (verdicts: readonly Verdict[]) => verdicts.filter(({ passes }) => passes).length
console.log(`pass: ${count(hedged)} of ${hedged.length}, without hedge ${count(plain)}`)
process.exit(count(hedged) === hedged.length ? 0 : 1)
