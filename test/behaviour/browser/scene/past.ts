import { formatUsd } from '../../../../src/base/decimal.ts'
import { openLedger } from '../../../../src/ledger/write/threaded-ledger.ts'
import type { LedgerRow } from '../../../../src/ledger/row.ts'
import { NOTHING_USED, row } from '../../../ledger/rows.ts'

const DAY = 86_400_000
const DAYS = 45
const PER_DAY = 260

/** Key, model and upstream, their weight, and the prices per million input and output tokens in USD cents. */
const USES = [
  { key: 'web-app', model: 'gpt-5.1', upstream: 'openai', weight: 9, input: 125n, output: 1000n },
  { key: 'web-app', model: 'gpt-5-mini', upstream: 'openai', weight: 8, input: 25n, output: 200n },
  {
    key: 'batch-nightly', model: 'claude-sonnet-4.5',
    upstream: 'anthropic', weight: 4, input: 300n, output: 1500n,
  },
  { key: 'research', model: 'gemini-3-pro', upstream: 'google', weight: 3, input: 200n, output: 1200n },
  {
    key: 'research', model: 'claude-sonnet-4.5', upstream: 'anthropic', weight: 3, input: 300n, output: 1500n,
  },
  { key: 'support-bot', model: 'gpt-5-mini', upstream: 'openai', weight: 5, input: 25n, output: 200n },
] as const

const DECK = USES.flatMap(use => Array.from({ length: use.weight }, () => use))

/**
 * Writes the rows of the last weeks into a ledger that is not open yet, with errors, estimates and
 * disconnected clients.
 *
 * @param now - ms since 1970; no row is later
 */
export function writePast(file: string, now: number): Promise<void> {
  return writeRows(file, pastRows(now))
}

/** Writes rows into a ledger that no other process writes. */
export async function writeRows(file: string, rows: Iterable<LedgerRow>): Promise<void> {
  const ledger = openLedger({
    file, keep: null,
    onFailure: trouble => { throw new Error(`the ledger of the test: ${trouble.message}`) },
    onRecovered: () => {},
  })
  for (const each of rows) ledger.close(each)
  await ledger.flush()
  await ledger.shutdown()
}

function* pastRows(now: number): Generator<LedgerRow> {
  const random = sequence()
  const today = Math.floor(now / DAY) * DAY
  for (let day = today - DAYS * DAY; day <= today; day += DAY) {
    const isWeekend = [0, 6].includes(new Date(day).getUTCDay())
    const number = Math.round(PER_DAY * (isWeekend ? 0.45 : 1) * (0.8 + random() * 0.4))
    for (let index = 0; index < number; index++) {
      // More requests by day than by night.
      const startedAt = day + Math.floor((0.5 + (random() + random() - 1) * 0.5) * DAY)
      if (startedAt < now - 60_000) yield pastRow(startedAt, random)
    }
  }
}

function pastRow(startedAt: number, random: () => number): LedgerRow {
  const use = DECK[Math.floor(random() * DECK.length)] ?? USES[0]
  const inputTokens = 5_000 + Math.floor(random() * 18_000)
  const outputTokens = 500 + Math.floor(random() * 4_000)
  const isEstimated = random() < 0.06
  const fate = random()
  const firstByteMs = 180 + Math.round(random() ** 3 * 2400)
  const price = { input: dollars(use.input), output: dollars(use.output) }
  const common = row(uuid(startedAt, random), {
    startedAt, firstByteMs,
    durationMs: firstByteMs + outputTokens / 2,
    key: use.key, group: use.key === 'support-bot' ? 'helpdesk' : null, model: use.model, upstream: use.upstream, upstreamModel: use.model,
    attempts: [
      { upstream: use.upstream, model: use.model, outcome: 'ok', ms: firstByteMs, atMs: 1, status: 200 },
    ],
    usage: {
      ...row('').usage, inputTokens, outputTokens,
      // Cached and reasoning tokens have the prices of input and output.
      cachedInputTokens: Math.floor(inputTokens * 0.3), reasoningTokens: Math.floor(outputTokens * 0.2),
    },
    price,
    source: isEstimated ? 'estimated' : 'reported',
    // One cent per million tokens is 10,000 pico-USD per token.
    costPico: (BigInt(inputTokens) * use.input + BigInt(outputTokens) * use.output) * 10_000n,
  })
  if (fate < 0.02) {
    return {
      ...common, end: 'error', error: 'upstream_unreachable', status: 502, firstByteMs: null, durationMs: 42,
      costPico: 0n, source: 'none', usage: NOTHING_USED,
      attempts: [
        { upstream: use.upstream, model: use.model, outcome: 'upstream_unreachable', ms: 40, atMs: 1 },
      ],
    }
  }
  if (fate < 0.04) return { ...common, end: 'client_gone', source: 'estimated' }
  return common
}

function dollars(cents: bigint): string {
  return formatUsd(cents * 10_000_000_000n)
}

/** A UUID of version 7, like the request ids of the gateway. */
function uuid(at: number, random: () => number): string {
  const hex = (digits: number) => Math.floor(random() * 16 ** digits).toString(16).padStart(digits, '0')
  const time = at.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(6)}${hex(6)}`
}

/** Pseudo-random numbers from 0 to 1, the same in every run (linear congruential generator). */
function sequence(): () => number {
  let state = 42
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}
