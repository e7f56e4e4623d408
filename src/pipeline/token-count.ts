import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { estimateTokens } from '../protocols/request/request-estimate.ts'
import { sendJson } from './gateway-response.ts'

/** Sends the number of tokens of the request's prompt, counted by the gateway. For endpoints with a `tokenCount`. */
export async function sendTokenCount(gateway: Gateway, exchange: Exchange): Promise<void> {
  const { classified: { endpoint: { prompt, tokenCount } }, request } = exchange
  const body = request.body?.bytes ?? Buffer.alloc(0)
  const tokens = await gateway.accounts.counter.prompt(prompt, body) ?? estimateTokens(body)
  exchange.throwIfStopped()
  // Earlier targets failed, so none of them served the request.
  exchange.serve(null)
  sendJson(gateway, exchange, 200, tokenCount?.(tokens) ?? '', { 'x-gateway-estimated': 'true' })
}
