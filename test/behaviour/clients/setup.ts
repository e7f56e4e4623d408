import type { Test } from 'tap'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

/** A key that may use only the model `plain`. */
export const NARROW_KEY = 'sk-narrow-0123456789abcdef'
export const WRONG_KEY = 'sk-wrong-0123456789abcdef'

/** Behaviours of the simulator after which a stream is not complete. */
export const CUTS = [
  'reset_after=3', 'close_after=3', 'cut_after=3', 'no_terminator', 'wrong_length,cut_after=3',
  'malformed_after=2,close_after=3',
]

/**
 * The gateway that the vendors' clients are put in front of. Models that begin
 * with `sim` go to the simulator inside; those with `tcp` to one behind a real
 * connection, which can be reset.
 */
export async function startForClients(t: Test): Promise<TestGateway> {
  const { url } = await start(t)
  return startTestGateway(t, `
server: { listen: 127.0.0.1:0, body_limit: 256kb }
upstreams:
  demo: { simulator: true, websocket: true }
  tcp: { url: "${url}" }
routes:
  - { path: "/v1/files*", to: demo }
  - { path: "/v1/batches*", to: demo }
  - { path: /v1/moderations, to: demo }
  - { model: "slow*", to: demo, timeouts: { first_byte: 50ms } }
  - { model: "stall*", to: demo, timeouts: { idle: 50ms } }
  - { model: "tcp*", to: tcp }
  - { model: alias, to: { upstream: demo, model: "sim,echo" } }
  - { model: [plain, "sim*"], to: demo }
models: { sim-listed: { price: { input: 1, output: 2 } } }
keys:
  - { name: test, key: ${KEY} }
  - { name: narrow, key: ${NARROW_KEY}, models: [plain] }
`)
}

/** @returns the error with which the promise rejects; fails if the promise resolves */
export async function rejection(t: Test, promise: PromiseLike<unknown>, name: string): Promise<unknown> {
  try {
    await promise
  } catch (thrown) {
    return thrown
  }
  t.fail(`${name}: the promise must reject`)
  return undefined
}

/** Reads a stream to its end. */
export async function drained(stream: PromiseLike<AsyncIterable<unknown>>): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of await stream) events.push(event)
  return events
}

/** The log lines of the exchanges that ended while `work` ran, one for each request that arrived. */
export async function exchangesOf(
  gateway: TestGateway, work: () => PromiseLike<unknown>,
): Promise<Record<string, unknown>[]> {
  const before = gateway.logged.length
  await work()
  return gateway.logged.slice(before).filter(line => line.msg === 'exchange')
}
