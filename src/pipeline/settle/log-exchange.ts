import { formatUsd } from '../../base/decimal.ts'
import { causeOf } from '../../base/errors.ts'
import type { GatewayError } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { LedgerRow } from '../../ledger/row.ts'

/** Logs a settled exchange, from its ledger row. @param suspect the upstream reported invalid usage */
export function logExchange(
  gateway: Gateway, exchange: Exchange, failure: GatewayError | null,
  row: LedgerRow, suspect: boolean,
): void {
  const { usage } = row
  const line = {
    ...exchange.logIds,
    key: row.key ?? undefined,
    client: exchange.clientAddress,
    method: exchange.req.method,
    path: exchange.target.path,
    endpoint: row.endpoint,
    model: row.model ?? undefined,
    upstream: row.upstream ?? undefined,
    attempts: row.attempts.length > 1 ? row.attempts.length : undefined,
    status: exchange.delivery.status,
    end: row.end,
    error: row.error ?? undefined,
    first_byte_ms: row.firstByteMs ?? undefined,
    ms: row.durationMs,
    bytes_in: row.bytesIn,
    bytes_out: row.bytesOut,
    input_tokens: usage.inputTokens ?? undefined,
    output_tokens: usage.outputTokens ?? undefined,
    cost_usd: row.costPico === null ? undefined : formatUsd(row.costPico),
  }
  if (suspect) {
    const which = { ...exchange.logIds, upstream: row.upstream }
    gateway.log.warn(which, 'the upstream reported invalid usage: it was counted instead, or is unknown')
  }
  if (failure === null) gateway.log.info(line, 'exchange')
  else if (failure.source === 'client') gateway.log.info({ ...line, why: failure.message }, 'exchange')
  else gateway.log.warn({ ...line, why: failure.message, cause: causeOf(failure) }, 'exchange')
}
