import type { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { End, LedgerRow } from './ledger/row.ts'
import { cost } from './metering/cost.ts'
import { provisionalUsage } from './metering/settle.ts'
import type { Settled } from './metering/settle.ts'
import type { Usage } from './metering/usage.ts'

/** The ledger's row of an exchange that has ended. */
export function finalRow(
  gateway: Gateway, exchange: Exchange, failure: GatewayError | null, settled: Settled,
): LedgerRow {
  const { quoted } = exchange
  const costPico = settled.billed ? cost(settled.usage, quoted?.price ?? null) : 0n
  return row(exchange, {
    end: endOf(exchange, failure),
    error: failure?.code ?? null,
    usage: settled.usage,
    source: settled.source,
    costPico,
    durationMs: round(gateway.clock.monotonic() - exchange.startedAt),
    status: exchange.status === 0 ? null : exchange.status,
  })
}

/** The row as it is to stand if the process dies now: with what is known, or estimated, so far. */
export function draftRow(exchange: Exchange): LedgerRow {
  const { answer, quoted } = exchange
  const meter = answer?.kind === 'stream' ? answer.meter : null
  const usage = provisionalUsage(meter, exchange.estimatedInput)
  return row(exchange, {
    end: 'interrupted',
    error: null,
    usage,
    source: meter?.reading() ? 'mixed' : 'estimated',
    costPico: cost(usage, quoted?.price ?? null),
    durationMs: null,
    status: exchange.status === 0 ? null : exchange.status,
  })
}

type Ending = Pick<LedgerRow, 'end' | 'error' | 'source' | 'costPico' | 'durationMs' | 'status'> & { usage: Usage }

function row(exchange: Exchange, ending: Ending): LedgerRow {
  const { classified, candidate, quoted } = exchange
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
    attempts: exchange.attempts.map(attempt => ({ ...attempt, ms: round(attempt.ms), atMs: round(attempt.atMs) })),
    price: quoted?.price ?? null,
    priceVersion: quoted?.version ?? null,
    bytesIn: exchange.bytesIn,
    bytesOut: exchange.bytesOut,
    ...ending,
  }
}

/** How an exchange ended, in the ledger's words. */
export function endOf(exchange: Exchange, failure: GatewayError | null): End {
  // An upstream's own error passes as it is: delivered, but no answer.
  if (failure === null) return exchange.status >= 400 ? 'error' : 'complete'
  switch (failure.code) {
    case 'client_gone':
    case 'body_incomplete':
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
    case 'draining':
      return 'refused'
    default:
      return failure.source === 'client' ? 'refused' : 'error'
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
