import type { LedgerRow } from '../../ledger/row.ts'
import { callBody, contentFor } from '../../policy/hooks/hook-call.ts'
import type { LiveHook } from '../../policy/hooks/hook-set.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { requestFacts } from '../exchange/request-facts.ts'

/** A larger body is left out of a copy, because a copy is made between the requests of others. */
const MAX_BODY = 1024 * 1024
const NO_IDS: ReadonlySet<string> = new Set()
const NOTHING = { texts: null, body: null }

/** Gives copies to the hooks with `tap: true`. */
export function tapHooks(exchange: Exchange, hooks: readonly LiveHook[], row: LedgerRow): void {
  for (const { hook: { config }, tap } of hooks) {
    if (tap === null) continue
    const request = requestFacts(exchange)
    const add = (on: 'request' | 'response', content: Buffer): void => tap.add({ on, ids: NO_IDS, replaces: false, requestId: exchange.id, body: content })
    if (config.onRequest) add('request', callBody(config, request, null, contentFor(config, jsonOf(exchange), MAX_BODY) ?? NOTHING))
    if (config.onResponse) {
      const { inputTokens, outputTokens } = row.usage
      const response = { status: row.status, end: row.end, usage: { input_tokens: inputTokens, output_tokens: outputTokens } }
      add('response', callBody(config, request, response, NOTHING))
    }
  }
}

function jsonOf({ request: { body } }: Exchange): Buffer | null {
  return body?.json ? body.bytes : null
}
