import { within } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import type { Listener } from './listen/listener.ts'

export interface Shutdown {
  /**
   * @param hasSuccessor true if another process listens on the same addresses; absent = as in the options
   * @returns the number of exchanges that were cut off at the timeout
   */
  drain(hasSuccessor?: boolean): Promise<number>
  /** @returns the number of exchanges that were cut off */
  close(): Promise<number>
}

export interface ShutdownOptions {
  gateway(): Gateway
  readonly listeners: readonly Listener[]
  /** true if another process can listen on the same addresses. */
  readonly hasSuccessor: boolean
  /** Called when draining starts: ends other work that would delay the shutdown. */
  onDrain?(): void
  /** Called when no exchange is running any more. */
  closeResources(): Promise<void>
}

/** Maximum ms in which exchanges that were cut off end and are settled. */
const SETTLEMENT_TIMEOUT = 2_000
/** ms in which written bytes can be sent before their connection is closed. */
const FLUSH_TIMEOUT = 500

/**
 * Creates the shutdown. If another process listens on the same addresses, the gateway stops listening at once and serves the open
 * connections to their end. Otherwise it keeps listening while it drains: probes see that it drains, and after `server.drain_delay` clients
 * get a 503 with Retry-After.
 */
export function createShutdown(options: ShutdownOptions): Shutdown {
  const { gateway, listeners } = options
  const { sharedState, clock } = gateway()
  const { activeExchanges } = sharedState
  const idle = () => new Promise<void>(resolve => activeExchanges.whenIdle(resolve))
  let closing: Promise<number> | null = null
  const closeRequested = Promise.withResolvers<void>()

  const cutAndClose = async (): Promise<number> => {
    closeRequested.resolve()
    sharedState.shutdown = 'refuse'
    const cut = activeExchanges.size
    const headers = { 'retry-after': '1' }
    activeExchanges.stopAll(new GatewayError('draining', 'the gateway is shutting down', { headers }))
    await within(clock, SETTLEMENT_TIMEOUT, idle())
    await Promise.all(listeners.map(listener => listener.close(FLUSH_TIMEOUT)))
    await options.closeResources()
    return cut
  }
  const close = (): Promise<number> => (closing ??= cutAndClose())

  const handOver = async (): Promise<void> => {
    sharedState.shutdown = 'hand_over'
    await Promise.all(listeners.map(listener => listener.drain()))
    await idle()
  }
  const refuse = (): Promise<void> => {
    sharedState.shutdown = 'refuse'
    return idle()
  }
  const drain = async (hasSuccessor = options.hasSuccessor): Promise<number> => {
    options.onDrain?.()
    const { drain, drainDelay } = gateway().config.server
    if (!hasSuccessor && drainDelay > 0) {
      sharedState.shutdown = 'delay'
      await within(clock, drainDelay, closeRequested.promise)
      if (closing !== null) return closing
    }
    await within(clock, drain, hasSuccessor ? handOver() : refuse())
    return close()
  }
  return { close, drain }
}
