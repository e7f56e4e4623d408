import { AsyncLocalStorage } from 'node:async_hooks'
import type { Socket } from 'node:net'
import { systemClock } from '../base/clock.ts'
import { GatewayError, noDescriptor, overloaded } from '../base/errors.ts'
import type { Address, Config } from '../config/types.ts'
import type { Exchange } from '../pipeline/exchange/exchange.ts'
import type { GatewayParts } from '../pipeline/parts/gateway.ts'
import type { MountHost, Mount, OpenMount } from '../pipeline/parts/mount.ts'
import { handle } from '../pipeline/pipeline.ts'
import { responseOn } from '../pipeline/upgrade.ts'
import type { ClientRequest } from '../proxy/client/client.ts'
import type { MetricsOutput } from '../telemetry/telemetry.ts'
import type { MetricsReport } from '../telemetry/worker-metrics.ts'
import { watchAlerts } from './alerts/alert-watch.ts'
import { buildGateway } from './build-gateway.ts'
import { watchCertificateValidity } from './alerts/certificate-watch.ts'
import { readCertificate, type ParsedCertificate } from './listen/certificate.ts'
import { joinCluster } from '../cluster/join-cluster.ts'
import { processStatus, type ProcessStatus } from './control.ts'
import { correctFileModes } from './file-modes.ts'
import { gaugeSource } from './gauge-source.ts'
import { listen, type Certificate, type Listener } from './listen/listener.ts'
import { respondToMalformed, sendRawResponse, logHandshakeFailure } from './listen/malformed.ts'
import { clientOf, newExchange } from './listen/new-exchange.ts'
import { warnOfResets } from './listen/port-sharing.ts'
import { Reloader, type ConfigLoader, type ReloadResult } from './reloader.ts'
import { ResetLimit } from './listen/reset-limit.ts'
import { createShutdown, type Shutdown } from './shutdown.ts'
import { startSimulator, type RunningSimulator } from './simulator.ts'
import { openMetricsOutput, openTelemetry } from './load-telemetry.ts'
import type { Addresses } from './worker-messages.ts'

/**
 * `drain` accepts no new exchanges, waits up to `server.drain` for running exchanges, and then closes. `close` ends all exchanges at once.
 */
export interface RunningGateway extends Shutdown {
  readonly addresses: Addresses
  /** Applies a configuration completely or not at all. A running exchange keeps the configuration with which it started. */
  reload(load: ConfigLoader, by: string): Promise<ReloadResult>
  /** The counts since the last call, and the current state; null = this process has no telemetry. */
  metricsReport(): Promise<MetricsReport> | null
  status(): ProcessStatus
  /** Ends the exchange in whose asynchronous context an uncaught error was thrown. @returns false = no running exchange */
  abortExchange(error: unknown): boolean
}

export interface ServerParts extends Omit<GatewayParts, 'clock' | 'telemetry'> {
  /** Mounts the console on its own listener; absent = only the API is served. */
  readonly mount?: OpenMount
}

/**
 * Starts the listeners, the upstream connections, and the simulator if an upstream needs it.
 * @throws the system's error if an address cannot be used
 */
export async function startGateway(config: Config, options: ServerParts): Promise<RunningGateway> {
  const { mount: openMount, ...parts } = options
  if (config.ledger !== null) correctFileModes(config.ledger.file, parts.log)
  const certificate = readCertificate(config.server.tls)
  let simulator: RunningSimulator | null = null
  const simulatorFor = async ({ upstreams }: Config): Promise<string | null> => {
    if ([...upstreams.values()].some(upstream => upstream.simulator)) simulator ??= await startSimulator()
    return simulator?.socketPath ?? null
  }
  const listeners: Listener[] = []
  const socket = await simulatorFor(config)
  const telemetry = await openTelemetry(config, parts)
  const first = buildGateway(config, { ...parts, telemetry, clock: systemClock }, socket)
  const { shown } = first.sharedState
  shown.chain = certificate?.chain ?? []
  const setCertificate = (certificate: ParsedCertificate) => {
    for (const listener of listeners) listener.setCertificate(certificate)
    shown.chain = certificate.chain
  }
  const reloader = new Reloader({ gateway: first, simulatorFor, setCertificate })
  /** The exchange to which asynchronous work belongs: an uncaught error ends that exchange. */
  const exchangeContext = new AsyncLocalStorage<ExchangeContext>()
  const runInContext = (exchange: Exchange, run: () => Promise<void>): void => {
    const context: ExchangeContext = { exchange }
    void exchangeContext.run(context, run).then(() => {
      // Timers of the connection keep the context in memory. Remove the exchange and its body from the context.
      context.exchange = null
    })
  }
  const run: MountHost['run'] = (req, res, { url, identity, strippedHeaders }) => {
    // The client may have disconnected while it was authenticated.
    if ('stream' in req ? req.stream.destroyed : req.destroyed) return
    const { gateway } = reloader
    const exchange = newExchange(gateway, withoutHeaders(req, url, strippedHeaders), res, false, true, identity)
    runInContext(exchange, () => handle(gateway, exchange, null))
  }
  const host: MountHost = { current: () => reloader.gateway, clientOf: req => clientOf(reloader.gateway, req), run }
  const mounted = config.console === null ? null : openMount?.(host) ?? null
  const resetLimit = new ResetLimit({
    clock: systemClock,
    isExempt: address => reloader.gateway.trusts(address),
    onBlocked: (address, seconds) => parts.log.warn(
      { address, seconds }, `new connections of ${address} are refused for ${seconds} s: it abandons too many HTTP/2 streams`,
    ),
  })
  const open = async (address: Address, tls: Certificate | null, mount: Mount | null, managed: boolean) => {
    const listener = await listen({
      listen: address,
      reusePort: config.server.reusePort,
      maxConnections: () => reloader.gateway.config.server.maxConnections,
      tls,
      keepAlive: config.server.idle,
      resetLimit,
      onRequest: (req, res, awaitsContinue) => {
        if (mount?.accepts(req)) {
          if (awaitsContinue) res.writeContinue()
          return mount.handle(req, res)
        }
        const { gateway } = reloader
        const exchange = newExchange(gateway, req, res, awaitsContinue, managed)
        runInContext(exchange, () => handle(gateway, exchange, null))
      },
      onUpgrade: (req, socket, head) => {
        const { gateway } = reloader
        const exchange = newExchange(gateway, req, responseOn(req, socket), false, managed)
        runInContext(exchange, () => handle(gateway, exchange, { socket: socket as Socket, head }))
      },
      onMalformed: (error, socket, own) => respondToMalformed(reloader.gateway, error, socket, own),
      onHandshakeFailure: (error, socket) => logHandshakeFailure(reloader.gateway, error, socket),
      onNoRoom: (socket, missing) => {
        const error = missing === 'descriptor' ? noDescriptor() : overloaded('too many connections are open')
        sendRawResponse(reloader.gateway, error, socket)
      },
    })
    listeners.push(listener)
    return listener.url
  }
  telemetry?.watch(gaugeSource(() => reloader.gateway))
  let metrics: MetricsOutput | null = null
  const unwatch = watchCertificateValidity(first.sharedState)
  const unwatchAlerts = parts.reportsAlerts === false ? null : watchAlerts(() => reloader.gateway, parts.budgetSpend, parts.passedShares)
  const member = joinCluster(config, parts, () => reloader.gateway)
  const ending = createShutdown({
    gateway: () => reloader.gateway,
    listeners,
    hasSuccessor: config.server.reusePort || config.server.listen.fd !== undefined,
    onDrain: () => mounted?.drain(),
    closeResources: async () => {
      unwatch()
      unwatchAlerts?.()
      await mounted?.close()
      const { upstreams, hooks, keyStore, accounts, checks, callers } = reloader.gateway
      checks.stop()
      callers?.stop(null)
      for (const { credential } of upstreams.values()) credential?.credential.close()
      await Promise.all([hooks?.destroy(), ...[...upstreams.values()].map(({ transport }) => transport.destroy())])
      await simulator?.close()
      keyStore?.close()
      reloader.gateway.sharedState.capsuleKeys.close()
      await member?.close()
      await accounts.close()
      await reloader.gateway.sharedState.archive?.close()
      await Promise.all([metrics?.close(), telemetry?.close()])
    },
  })
  try {
    // Wait for the ledger before the first request, so that a killed process loses no row.
    await Promise.all([first.accounts.ready(), first.sharedState.capsuleKeys.ready(), member?.ready()])
    const base = await open(config.server.listen, certificate, null, false)
    if (config.server.reusePort) warnOfResets(parts.log)
    const console = config.console ? await open(config.console.listen, null, mounted, true) : null
    // With several workers, the supervisor serves the metrics of all of them.
    if (telemetry !== null && parts.worker === undefined) metrics = await openMetricsOutput(config, parts, async () => telemetry.registries)
    return {
      ...ending,
      addresses: { base, console, metrics: metrics?.url ?? null },
      metricsReport: () => telemetry?.report() ?? null,
      status: () => processStatus(reloader.gateway),
      reload: (load, by) => reloader.reload(load, by),
      abortExchange: error => stopExchange(exchangeContext.getStore()?.exchange ?? null, error),
    }
  } catch (error) {
    await ending.close()
    throw error
  }
}

interface ExchangeContext {
  /** The exchange; null = it has ended. */
  exchange: Exchange | null
}

/** Prepares a request for the pipeline: sets the target, and removes the named headers. */
function withoutHeaders(req: ClientRequest, url: string, names: ReadonlySet<string>): ClientRequest {
  req.url = url
  for (const name of names) delete req.headers[name]
  const { rawHeaders } = req
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (names.has((rawHeaders[at] as string).toLowerCase())) rawHeaders.splice(at, 2)
  }
  return req
}

function stopExchange(exchange: Exchange | null, error: unknown): boolean {
  if (exchange === null) return false
  exchange.stop(new GatewayError('internal', 'internal error of the gateway; report it with the request id', { cause: error }))
  return true
}
