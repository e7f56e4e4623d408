import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Gateway } from '../context/gateway.ts'
import type { Listener } from './listener.ts'

/** The two ways down. */
export interface Shutdown {
  /**
   * @param hasSuccessor another process has the same addresses; unless told, what the options say
   * @returns how many exchanges were cut off because the time was up
   */
  drain(hasSuccessor?: boolean): Promise<number>
  /** @returns how many exchanges that cut off */
  close(): Promise<number>
}

export interface ShutdownOptions {
  /** The one that is in force. */
  gateway(): Gateway
  readonly listeners: readonly Listener[]
  /** Another process can have the same addresses. */
  readonly hasSuccessor: boolean
  /** Told when it begins to drain: what is no exchange must not keep it waiting. */
  onDrain?(): void
  /** Closes all that is left when no exchange runs. */
  closeResources(): Promise<void>
}

/** Milliseconds that exchanges which are cut off may take to say so and to be settled. */
const SETTLEMENT_TIMEOUT = 2_000
/** Milliseconds that bytes which were written may take to leave before their connection is cut. */
const FLUSH_TIMEOUT = 500

/**
 * How a gateway ends. Where another process can have its address, it stops
 * listening at once and serves what comes on the open connections to their end.
 * Otherwise its listeners stay open while it drains: probes are told, and clients
 * get a 503 to retry.
 */
export function createShutdown({ gateway, listeners, hasSuccessor: handsOver, onDrain: leave, closeResources: closeRest }: ShutdownOptions): Shutdown {
  const { sharedState: lasting, clock } = gateway()
  const { activeExchanges: running } = lasting
  const idle = () => new Promise<void>(resolve => running.whenIdle(resolve))
  let closing: Promise<number> | null = null

  const cutAndClose = async (): Promise<number> => {
    lasting.draining = true
    const cut = running.size
    const headers = { 'retry-after': '1' }
    running.stopAll(new GatewayError('draining', 'the gateway is shutting down', { headers }))
    await withTimeout(clock, SETTLEMENT_TIMEOUT, idle())
    await Promise.all(listeners.map(listener => listener.close(FLUSH_TIMEOUT)))
    await closeRest()
    return cut
  }
  const close = (): Promise<number> => (closing ??= cutAndClose())

  const handOver = async (): Promise<void> => {
    lasting.handingOver = true
    await Promise.all(listeners.map(listener => listener.drain()))
    await idle()
  }
  const refuse = (): Promise<void> => {
    lasting.draining = true
    return idle()
  }
  const drain = async (leaves = handsOver): Promise<number> => {
    leave?.()
    await withTimeout(clock, gateway().config.server.drain, leaves ? handOver() : refuse())
    return close()
  }
  return { close, drain }
}

/** Resolves with the promise, or when the time is up. */
function withTimeout(clock: Clock, ms: number, promise: Promise<void>): Promise<void> {
  const { promise: up, resolve } = Promise.withResolvers<void>()
  const deadline = clock.setTimeout(resolve, ms)
  return Promise.race([promise, up]).finally(() => deadline.cancel())
}
