import { add, addCost } from './bill.ts'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { End, LedgerRow } from './ledger/row.ts'
import { cost } from './metering/cost.ts'
import type { QuotedPrice } from './metering/prices.ts'
import { isMetered, isUnmetered, provisionalUsage } from './metering/settle.ts'
import type { Answer, Bill } from './metering/settle.ts'
import type { StreamMeter } from './metering/stream-meter.ts'
import { priceFor } from './metering/tier-price.ts'
import { blankUsage } from './metering/usage.ts'
import type { Usage } from './metering/usage.ts'
import { toldError } from './told-error.ts'

/** The ledger's row of an exchange that has ended. */
export function finalRow(
  exchange: Exchange, failure: GatewayError | null, bill: Bill, durationMs: number,
): LedgerRow {
  return row(exchange, {
    end: endOf(exchange, failure),
    error: failure?.code ?? null,
    usage: bill.usage,
    source: bill.source,
    quoted: exchange.quoted,
    costPico: bill.costPico,
    durationMs: round(durationMs),
    status: exchange.status === 0 ? null : exchange.status,
  })
}

/** The row as it is to stand if the process dies now: with what is known, or estimated, so far. */
export function draftRow(exchange: Exchange): LedgerRow {
  const { session, quoted: asked } = exchange
  if (session?.bill) return draft(exchange, { ...session.bill, quoted: asked })
  const parts = provisional(exchange)
  const [{ meter, quoted }] = parts
  const usage = parts.map(part => part.usage).reduce(add)
  const isCounted = Object.values(usage).some(count => count !== null)
  return draft(exchange, {
    usage,
    source: meter?.reading() ? 'mixed' : isCounted ? 'estimated' : 'none',
    quoted,
    costPico: isFree(exchange) ? 0n : parts.map(part => part.costPico).reduce(addCost),
  })
}

type Known = Pick<Ending, 'usage' | 'source' | 'quoted' | 'costPico'>

function draft(exchange: Exchange, { usage, source, quoted, costPico }: Known): LedgerRow {
  return row(exchange, {
    end: 'interrupted',
    error: null,
    usage,
    source,
    quoted,
    costPico,
    durationMs: null,
    status: exchange.status === 0 ? null : exchange.status,
  })
}

/** Does it ask for something that costs nothing, such as to count tokens? */
function isFree({ classified, model }: Exchange): boolean {
  const { name } = classified.endpoint
  return !isMetered(name) && (model === null || !isUnmetered(name))
}

/** What the answers used that broke so far, for the client: to be called when it is told. */
export function usedSoFar({ earlier }: Exchange): () => Usage {
  const shares = earlier.map(({ share }) => share)
  return () => shares.map(({ told }) => told.usage).reduce(add, blankUsage())
}

/** Has the client been sent anything that was generated? */
export function hasSpoken(exchange: Exchange): boolean {
  return provisional(exchange).some(({ meter }) => meter?.sawContent)
}

interface Provisional {
  readonly meter: StreamMeter | null
  readonly usage: Usage
  readonly quoted: QuotedPrice | null
  readonly costPico: bigint | null
}

interface Asked {
  readonly answer: Answer | null
  readonly quoted: QuotedPrice | null
  readonly estimatedInput: number | null
}

/** What is known of each answer that the client got some of: the one under way, and those before it. */
function provisional(exchange: Exchange): [Provisional, ...Provisional[]] {
  const part = ({ answer, quoted: asked, estimatedInput }: Asked): Provisional => {
    const meter = answer?.kind === 'stream' ? answer.meter : null
    const usage = provisionalUsage(meter, estimatedInput)
    const quoted = priceFor(asked, answer)
    return { meter, usage, quoted, costPico: cost(usage, quoted?.price ?? null) }
  }
  return [part(exchange), ...exchange.earlier.map(part)]
}

type Ending = { usage: Usage, quoted: QuotedPrice | null }
  & Pick<LedgerRow, 'end' | 'error' | 'source' | 'costPico' | 'durationMs' | 'status'>

function row(exchange: Exchange, { quoted, ...ending }: Ending): LedgerRow {
  const { classified } = exchange
  // One that was refused never got as far.
  const candidate = exchange.attempts.length === 0 ? null : exchange.candidate
  const { endpoint } = classified
  return {
    requestId: exchange.id,
    startedAt: Math.round(exchange.startedWall),
    firstByteMs: exchange.firstByteAt === 0 ? null : round(exchange.firstByteAt - exchange.startedAt),
    key: exchange.identity.key?.name ?? null,
    protocol: endpoint.protocol,
    endpoint: endpoint.name,
    model: exchange.model,
    upstream: candidate?.upstream.name ?? null,
    upstreamModel: candidate ? (candidate.model ?? exchange.model) : null,
    attempts: exchange.attempts.map(attempt => (
      { ...attempt, ms: round(attempt.ms), atMs: round(attempt.atMs) }
    )),
    price: quoted?.price ?? null,
    priceVersion: quoted?.version ?? null,
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    route: exchange.route?.text ?? null,
    ...ending,
  }
}

/** How an exchange ended, in the ledger's words. */
export function endOf(exchange: Exchange, failure: GatewayError | null): End {
  // An upstream's own error passes as it is: delivered, but no answer.
  if (failure === null) return toldError(exchange) ? 'error' : 'complete'
  switch (failure.code) {
    case 'client_gone':
      return 'client_gone'
    case 'upstream_cut':
      return 'upstream_cut'
    case 'connect_timeout':
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
    case 'client_stalled':
    case 'body_timeout':
      return 'timeout'
    case 'key_revoked':
      return 'error'
    case 'draining':
      return 'refused'
    default:
      return failure.source === 'client' ? 'refused' : 'error'
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
