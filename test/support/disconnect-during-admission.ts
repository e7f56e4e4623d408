import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import type { LimiterRequest } from '../../src/limits/workers/lease-messages.ts'
import { WorkerLimiter } from '../../src/limits/workers/worker-limiter.ts'
import { KEY, startTestGateway } from './gateway.ts'
import { connect } from './wire.ts'

/**
 * A client sends a request and disconnects while the lease server checks its limits,
 * as with several workers; then the lease server admits the request.
 *
 * @param yaml upstreams and routes
 * @param request as it goes over the wire
 * @returns the log line of its exchange
 */
export async function disconnectDuringAdmission(
  t: Test, yaml: string, request: string,
): Promise<Record<string, unknown>> {
  const asked = Promise.withResolvers<LimiterRequest & { kind: 'admit' }>()
  const limiter = new WorkerLimiter(null, systemClock, requests => {
    for (const request of requests) if (request.kind === 'admit') asked.resolve(request)
  })
  const keys = `keys: [{ name: test, key: ${KEY}, limits: { concurrent: 1 } }]\n`
  const gateway = await startTestGateway(t, keys + yaml, {}, { openLimiter: () => limiter })
  const client = await connect(t, gateway.url)
  client.send(request)
  const { id } = await asked.promise
  client.socket.resetAndDestroy()
  // A response on another connection shows that the gateway has seen the reset.
  await fetch(`${gateway.url}/api/status`)
  const figures = { requests: null, tokens: null }
  limiter.receive({ replies: [{ id, refusal: null, rateLimitStates: figures, lease: null }], recalledLeases: [] })
  return gateway.waitForLog(line => line.msg === 'exchange')
}
