import { within } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import type { Listener } from './listen/listener.ts'

export interface Shutdown {
  /**
   * @param hasSuccessor another process listens on the same addresses; default: the option of that name
   * @returns the number of exchanges that were cut off at the timeout
   */
  drain(hasSuccessor?: boolean): Promise<number>
  /** @returns the number of exchanges that were cut off */
  close(): Promise<number>
}

export interface ShutdownOptions {
  gateway(): Gateway
  readonly listeners: readonly Listener[]
  /** Another process can listen on the same addresses. */
  readonly hasSuccessor: boolean
  /** Called when draining starts, so that other work ends and does not delay it. */
  onDrain?(): void
  /** Called when no exchange is running. */
  closeResources(): Promise<void>
}

/** ms for exchanges that were cut off to end and be settled. */
const SETTLEMENT_TIMEOUT = 2_000
/** ms for written bytes to be sent before their connection is closed. */
const FLUSH_TIMEOUT = 500

/**
 * A gateway with a successor on its address stops listening at once and serves the open connections to their end. Otherwise the
 * listeners stay open while it drains: probes see it, and after `server.drain_delay` clients get a 503 with Retry-After.
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
