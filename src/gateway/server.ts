import { AsyncLocalStorage } from 'node:async_hooks'
import { systemClock } from '../base/clock.ts'
import type { Address, Config } from '../config/types.ts'
import { GatewayError, overloaded } from '../base/errors.ts'
import type { Exchange } from '../context/exchange.ts'
import { buildGateway } from './gateway.ts'
import type { GatewayParts } from './gateway.ts'
import type { Host, Mount, OpenMount } from './mount.ts'
import { handle } from '../pipeline/pipeline.ts'
import type { ClientRequest } from '../proxy/client.ts'
import { handleUpgrade, responseOn } from '../pipeline/upgrade.ts'
import { watchCertificate } from './certificate-watch.ts'
import { readCertificate } from './certificate.ts'
import type { KnownCertificate } from './certificate.ts'
import { endingOf } from './shutdown.ts'
import type { Ending } from './shutdown.ts'
import { clientOf, newExchange } from './new-exchange.ts'
import { listen } from './listener.ts'
import type { Certificate, Listener } from './listener.ts'
import { answerMalformed, answerRaw, noteHandshake } from './malformed.ts'
import { warnOfResets } from './port-sharing.ts'
import { Reloader } from './reload.ts'
import type { Load, Reloaded } from './reload.ts'
import { startSimulator } from './simulator.ts'
import type { RunningSimulator } from './simulator.ts'

/**
 * `drain` takes no new exchanges and lets the running ones finish, for as long
 * as `server.drain` allows; then everything is closed. `close` ends everything
 * now.
 */
export interface RunningGateway extends Ending {
  readonly addresses: { readonly base: string; readonly console: string | null }
  /**
   * Puts another configuration in force, as a whole or not at all. Exchanges
   * keep the one that they began with.
   */
  reload(load: Load): Promise<Reloaded>
  /**
   * Called where an error was thrown past everybody: ends the exchange in whose
   * course that was.
   *
   * @returns false when it was in the course of none that still runs
   */
  blame(error: unknown): boolean
}

export interface ServerParts extends Omit<GatewayParts, 'clock'> {
  /** What stands on the console's listener beside the API; nothing unless told. */
  readonly mount?: OpenMount
}

/**
 * Starts a gateway: its listeners, its upstream connections, and the simulator
 * where an upstream is one.
 *
 * @throws the system's error when an address cannot be listened on
 */
export async function startGateway(config: Config, options: ServerParts): Promise<RunningGateway> {
  const { mount: openMount, ...parts } = options
  const certificate = readCertificate(config.server.tls)
  let simulator: RunningSimulator | null = null
  const simulatorFor = async ({ upstreams }: Config): Promise<string | null> => {
    if ([...upstreams.values()].some(upstream => upstream.simulator)) simulator ??= await startSimulator()
    return simulator?.socketPath ?? null
  }
  const listeners: Listener[] = []
  const socket = await simulatorFor(config)
  const first = buildGateway(config, { ...parts, clock: systemClock }, socket)
  const { shown } = first.lasting
  shown.chain = certificate?.chain ?? []
  const certify = (certificate: KnownCertificate) => {
    for (const listener of listeners) listener.certify(certificate)
    shown.chain = certificate.chain
  }
  const reloader = new Reloader({ gateway: first, simulatorFor, certify })
  /** In the course of which exchange something happens: for errors that nobody catches. */
  const course = new AsyncLocalStorage<Course>()
  const follow = async (exchange: Exchange, run: () => Promise<void>): Promise<void> => {
    const of: Course = { exchange }
    await course.run(of, run)
    // Timers of the connection keep the course, and are not to keep the exchange with its body.
    of.exchange = null
  }
  const run: Host['run'] = (req, res, { url, identity, withhold }) => {
    // It took a while to find out who asks: whoever has left since has said so already.
    if ('stream' in req ? req.stream.destroyed : req.destroyed) return
    const { gateway } = reloader
    const exchange = newExchange(gateway, withheld(req, url, withhold), res, false)
    exchange.managed = true
    exchange.vouched = identity
    void follow(exchange, () => handle(gateway, exchange))
  }
  const host: Host = {
    current: () => reloader.gateway, clientOf: req => clientOf(reloader.gateway, req), run,
  }
  const mounted = config.console === null ? null : openMount?.(host) ?? null
  const open = async (address: Address, tls: Certificate | null, mount: Mount | null, managed: boolean) => {
    const listener = await listen({
      listen: address,
      reusePort: config.server.reusePort,
      maxConnections: () => reloader.gateway.config.server.maxConnections,
      tls,
      onRequest: (req, res, awaitsContinue) => {
        if (mount?.takes(req)) {
          if (awaitsContinue) res.writeContinue()
          mount.handle(req, res)
          return
        }
        const { gateway } = reloader
        const exchange = newExchange(gateway, req, res, awaitsContinue)
        exchange.managed = managed
        void follow(exchange, () => handle(gateway, exchange))
      },
      onUpgrade: (req, socket, head) => {
        const { gateway } = reloader
        const exchange = newExchange(gateway, req, responseOn(req, socket), false)
        exchange.managed = managed
        void follow(exchange, () => handleUpgrade(gateway, exchange, socket, head))
      },
      onMalformed: (error, socket) => answerMalformed(reloader.gateway, error, socket),
      onNoHandshake: (error, socket) => noteHandshake(reloader.gateway, error, socket),
      onFull: socket => answerRaw(reloader.gateway, overloaded('too many connections are open'), socket),
    })
    listeners.push(listener)
    return listener.url
  }
  const unwatch = watchCertificate(first.lasting)
  const ending = endingOf({
    gateway: () => reloader.gateway,
    listeners,
    handsOver: config.server.reusePort || config.server.listen.fd !== undefined,
    leave: () => mounted?.leave(),
    closeRest: async () => {
      unwatch()
      await mounted?.close()
      const { upstreams, keyStore, accounts, checks } = reloader.gateway
      checks.stop()
      await Promise.all([...upstreams.values()].map(({ transport }) => transport.destroy()))
      await simulator?.close()
      keyStore?.close()
      await accounts.close()
      await reloader.gateway.lasting.archive?.close()
    },
  })
  try {
    // From here on a kill loses no row: not a moment later than the first request.
    await first.accounts.ledger?.ready()
    const base = await open(config.server.listen, certificate, null, false)
    if (config.server.reusePort) warnOfResets(parts.log)
    const console = config.console ? await open(config.console.listen, null, mounted, true) : null
    return {
      ...ending,
      addresses: { base, console },
      reload: load => reloader.reload(load),
      blame: error => stopOne(course.getStore()?.exchange ?? null, error),
    }
  } catch (error) {
    await ending.close()
    throw error
  }
}

interface Course {
  /** null when it has ended. */
  exchange: Exchange | null
}

/** The request as it is to go through the pipeline: at another target, and without what was not for it. */
function withheld(req: ClientRequest, url: string, names: ReadonlySet<string>): ClientRequest {
  req.url = url
  for (const name of names) delete req.headers[name]
  const { rawHeaders } = req
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (names.has((rawHeaders[at] as string).toLowerCase())) rawHeaders.splice(at, 2)
  }
  return req
}

function stopOne(exchange: Exchange | null, error: unknown): boolean {
  if (exchange === null) return false
  exchange.stop(new GatewayError('internal', 'the gateway has failed', { cause: error }))
  return true
}
