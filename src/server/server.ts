import type { Logger } from 'pino'
import { systemClock } from '../clock.ts'
import type { Config } from '../config/types.ts'
import { GatewayError } from '../errors.ts'
import { buildGateway } from '../gateway.ts'
import type { Gateway } from '../gateway.ts'
import { handle } from '../pipeline.ts'
import { handleUpgrade, responseOn } from '../upgrade.ts'
import { newExchange } from './intake.ts'
import { listen } from './listener.ts'
import type { Listener, ListenerOptions } from './listener.ts'
import { answerMalformed } from './malformed.ts'
import { startSimulator } from './simulator.ts'

export interface RunningGateway {
  readonly addresses: { readonly base: string; readonly console: string | null }
  /**
   * Takes no new exchanges and lets the running ones finish, for as long as
   * `server.drain` allows; then everything is closed.
   *
   * @returns how many exchanges were cut off because the time was up
   */
  drain(): Promise<number>
  /** Ends everything now. @returns how many exchanges that cut off */
  close(): Promise<number>
}

export interface ServerParts {
  readonly log: Logger
  readonly version: string
}

/**
 * Starts a gateway: its listeners, its upstream connections, and the simulator
 * where an upstream is one.
 *
 * @throws the system's error when an address cannot be listened on
 */
export async function startGateway(config: Config, parts: ServerParts): Promise<RunningGateway> {
  const needsSimulator = [...config.upstreams.values()].some(upstream => upstream.simulator)
  const simulator = needsSimulator ? await startSimulator() : null
  const gateway = buildGateway(config, {
    ...parts,
    clock: systemClock,
    simulatorSocket: simulator?.socketPath ?? null,
  })
  const listeners: Listener[] = []
  const open = async (address: Pick<ListenerOptions, 'listen' | 'tls'>): Promise<string> => {
    const listener = await listen({
      listen: address.listen,
      tls: address.tls,
      onRequest: (req, res, awaitsContinue) => void handle(gateway, newExchange(gateway, req, res, awaitsContinue)),
      onUpgrade: (req, socket, head) => {
        void handleUpgrade(gateway, newExchange(gateway, req, responseOn(req, socket), false), socket, head)
      },
      onMalformed: (error, socket) => answerMalformed(gateway, error, socket),
    })
    listeners.push(listener)
    return listener.url
  }
  const closeAll = async () => {
    await Promise.all(listeners.map(listener => listener.close(LAST_BYTES)))
    await Promise.all([...gateway.upstreams.values()].map(({ transport }) => transport.destroy()))
    await simulator?.close()
    await gateway.accounts.close()
  }
  try {
    // From here on a kill loses no row: not a moment later than the first request.
    await gateway.accounts.ledger?.ready()
    const base = await open(config.server)
    const console = config.console ? await open({ listen: config.console.listen, tls: null }) : null
    return { addresses: { base, console }, ...ending(gateway, closeAll) }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Milliseconds that exchanges which are cut off may take to say so and to be settled. */
const SETTLING = 2_000
/** Milliseconds that bytes which were written may take to leave before their connection is cut. */
const LAST_BYTES = 500

/** The two ways down. Listeners stay open while it drains: probes are told, and clients get a 503 to retry. */
function ending(gateway: Gateway, closeAll: () => Promise<void>) {
  let closing: Promise<number> | null = null
  const close = (): Promise<number> => (closing ??= cutAndClose())
  const cutAndClose = async (): Promise<number> => {
    gateway.draining = true
    const cut = gateway.running.size
    gateway.running.stopAll(new GatewayError('draining', 'the gateway is shutting down', { headers: { 'retry-after': '1' } }))
    await idle(gateway, SETTLING)
    await closeAll()
    return cut
  }
  const drain = async (): Promise<number> => {
    gateway.draining = true
    await idle(gateway, gateway.config.server.drain)
    return close()
  }
  return { close, drain }
}

/** Resolves when nothing runs any more, or when the time is up. */
function idle(gateway: Gateway, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const deadline = gateway.clock.setTimeout(resolve, ms)
  gateway.running.whenIdle(() => {
    deadline.cancel()
    resolve()
  })
  return promise
}
