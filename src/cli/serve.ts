import { flushCompileCache } from 'node:module'
import { Command } from 'commander'
import type { Logger } from 'pino'
import { systemClock } from '../base/clock.ts'
import { FileWatch } from '../base/files/file-watch.ts'
import { loadConfigInThread } from '../config/load/load-in-thread.ts'
import { referencedFiles, type LoadedConfig } from '../config/load/load.ts'
import { ConfigError, placeOf } from '../config/problem.ts'
import { UnreadableError, rereadText } from '../config/text/read.ts'
import { startupSettingsOf, withStartupSettings } from '../config/startup-settings.ts'
import { openControl, reloadReport, type ControlHandlers, type ControlRequest } from '../gateway/control.ts'
import type { Site } from '../gateway/docs-site.ts'
import { pendingKeys } from '../gateway/pending-keys.ts'
import type { ReloadResult } from '../gateway/reloader.ts'
import type { RunningGateway } from '../gateway/server.ts'
import type { Listening } from '../gateway/worker-messages.ts'
import { connectToSupervisor, type SupervisorChannel } from '../gateway/worker.ts'
import { configOption } from './common/config-option.ts'
import { exampleRequest } from './example-request.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { keepShapeOfTicks } from '../process/kept-shapes.ts'
import { descriptorFailure, listenFailure } from '../process/listen-failure.ts'
import { openLog } from '../process/log.ts'
import { openSite } from './open-docs-site.ts'
import { loadOrFail, loadTextOrFail } from './common/problems.ts'
import { deferHangups, stopOnSignals } from '../process/signals.ts'
import { collectGarbageOfLoads, collectGarbageOfStart } from '../process/spare-memory.ts'
import { superviseWorkers } from '../process/supervise.ts'
import { watchUncaughtErrors, type UncaughtErrors } from '../process/uncaught-errors.ts'
import { setServingFlags } from '../process/v8-flags.ts'
import { packageVersion } from '../process/version.ts'

const HELP = `
Reads the configuration, listens, and serves until a signal stops it. The log goes to standard
output: text on a terminal, otherwise one JSON object a line. The line with msg "listening" has the
addresses. Port 0 picks a free port.

Signals:
  SIGHUP             reload the configuration; if it has an error, the old one stays active
  SIGTERM, SIGINT    after server.drain_delay take no new requests, finish running ones within
                     server.drain, then exit
  SIGTERM or SIGINT  a second time: close every connection and exit now

Examples:
  gateway serve
  gateway serve --watch
  gateway serve --config /etc/gateway.yaml
  OPENAI_API_KEY=... gateway serve -c gateway.yaml
${EXIT_CODES.replace('failed while running', 'failed while running, or cut requests at the end')}`

export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the gateway.')
    .addOption(configOption('the configuration'))
    .option('-w, --watch', 'reload when the configuration or a certificate changes', false)
    .addHelpText('after', HELP)
    .action(serve)
}

async function serve(options: Options, command: Command): Promise<void> {
  void keepShapeOfTicks()
  const line = connectToSupervisor()
  const passHangups = line === null ? deferHangups() : null
  const { config: file, watch } = options
  const reload = Promise.withResolvers<() => void>()
  // Watch before the file is read, so that every later change is noticed.
  const watched = watch ? new FileWatch([file], () => void reload.promise.then(run => run())) : null
  const loaded = line === null
    ? { ...loadOrFail(file, command), pending: [], reportsAlerts: true }
    : await workerInitialConfig(line, file, command)
  watched?.watch([file, ...referencedFiles(loaded.config)])
  const opened = await openLog(loaded.config.log.level)
  const log = line === null ? opened.log : opened.log.child({ worker: line.worker })
  if (line === null) {
    for (const problem of loaded.warnings) log.warn(`${placeOf(problem)}: ${problem.message}`)
  }
  const unusable = line === null ? descriptorFailure(loaded.config) : null
  if (unusable !== null) return command.error(`error: ${unusable}`, { exitCode: EXIT.failed })
  const { workers, drain } = loaded.config.server
  if (line === null && workers > 1) {
    watched?.close()
    const beginning = { text: loaded.config.text, start: startupSettingsOf(loaded.config) }
    const supervised = superviseWorkers({
      workers, drain, beginning, logOutput: opened, ledgerFile: loaded.config.ledger?.file ?? null, announce: listening => announce(loaded, listening, log),
    })
    passHangups?.()
    return supervised
  }
  const faults = watchUncaughtErrors({ ...opened, log })

  const gateway = await start(loaded, log, line, command)
  let inForce = loaded.config
  const reloadNow = async (by: string): Promise<ReloadResult> => {
    const result = await gateway.reload(async () => {
      const again = await reloadAndWatch(file, watched)
      inForce = again.config
      return again
    }, by)
    if (result.applied) line?.reloaded(inForce.text, inForce.server.drain)
    return result
  }
  // Handle signals before "listening" is logged, because a reader of that line may send a signal at once.
  const control: ControlHandlers = { status: async () => [gateway.status()], reload: async by => reloadReport(await reloadNow(by)) }
  const stopped = untilStopped({ gateway, log, faults, line, control, reload: () => void reloadNow('SIGHUP') })
  const { ledger } = loaded.config
  const closeControl = line === null && ledger !== null ? await openControl(ledger.file, control, log) : null
  if (line === null) announce(loaded, gateway, log)
  else line.listening({ addresses: gateway.addresses, docs: gateway.docs })
  reload.resolve(() => void reloadNow('--watch'))
  passHangups?.()
  // The watched file may have changed during the start: then reload it.
  if (line !== null && watch && readConfigText(file) !== inForce.text) void reloadNow('--watch')
  collectGarbageOfLoads(systemClock)
  systemClock.setTimeout(finishStart, STARTUP_DURATION)
  const cut = await stopped
  closeControl?.()
  watched?.close()
  const lastReport = await gateway.metricsReport()
  if (lastReport !== null) await line?.sendMetrics(lastReport)
  log.info({ cut }, 'ended')
  await opened.flush()
  process.exit(cut === 0 && !faults.fatal ? EXIT.ok : EXIT.failed)
}

/** ms after the start in which code is still loaded. */
const STARTUP_DURATION = 1000

function finishStart(): void {
  // Store the compiled code now. Node stores it only at exit, and a killed process stores nothing.
  flushCompileCache()
  setServingFlags()
  // Set the flags before the collection: a collection starts the timer of V8's memory reducer with the current flags.
  collectGarbageOfStart(systemClock)
}

interface Options {
  readonly config: string
  readonly watch: boolean
}

interface InitialConfig extends LoadedConfig {
  /** Configuration keys that take effect only at the next restart of the gateway. */
  readonly pending: readonly string[]
  /** false = another worker reports alerts. */
  readonly reportsAlerts: boolean
}

async function workerInitialConfig(line: SupervisorChannel, file: string, command: Command): Promise<InitialConfig> {
  const { text, start, reportsAlerts = false } = await line.workerStart
  try {
    const loaded = loadTextOrFail(file, text, command)
    const config = withStartupSettings(loaded.config, start)
    return { ...loaded, config, pending: pendingKeys(config, loaded.config), reportsAlerts }
  } catch (error) {
    // The error may be temporary, for example while a certificate is being replaced: the next worker may succeed.
    line.release()
    throw error
  }
}

/** The text of the file; null = unreadable. */
function readConfigText(file: string): string | null {
  try {
    return rereadText(file)
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error
    return null
  }
}

/** Reloads the configuration. Also watches the files that the configuration names, even if they are missing or invalid. */
async function reloadAndWatch(file: string, watched: FileWatch | null): Promise<LoadedConfig> {
  try {
    const again = await loadConfigInThread(file)
    watched?.watch([file, ...referencedFiles(again.config)])
    return again
  } catch (error) {
    if (error instanceof ConfigError) watched?.add(error.files)
    throw error
  }
}

interface GatewayWithDocs extends RunningGateway { readonly docs: string | null }

async function start(
  { config, pending, warnings, reportsAlerts }: InitialConfig, log: Logger, line: SupervisorChannel | null, command: Command,
): Promise<GatewayWithDocs> {
  // Load these modules here, so that the other commands start faster.
  const [{ startGateway }, { openConsole }] = await Promise.all([import('../gateway/server.ts'), import('../console/open-console.ts')])
  let site: Site | null = null
  try {
    site = await openSite(config, log)
    const parts = { ...workerParts(line), pending, warnings, reportsAlerts, log, version: packageVersion(), mount: openConsole() }
    const gateway = await startGateway(config, parts)
    const drain = (handsOver?: boolean): Promise<number> => {
      // Close the site at once, because the next gateway may listen on its address.
      void site?.close()
      return gateway.drain(handsOver)
    }
    return { ...gateway, drain, docs: site?.url ?? null }
  } catch (error) {
    await site?.close()
    const reason = listenFailure(error)
    line?.release()
    if (reason === null) throw error
    return command.error(`error: ${reason}`, { exitCode: EXIT.failed })
  }
}

function workerParts(line: SupervisorChannel | null) {
  if (line === null) return {}
  const { worker, openLimiter, budgetSpend, passedShares, capsuleKey } = line
  return { worker, openLimiter, budgetSpend, passedShares, ...capsuleKey && { capsuleKey } }
}

/** Logs the addresses at every log level: with `:0`, the port is shown only here. */
function announce({ config, exampleKey: publicKey }: LoadedConfig, { addresses, docs }: Listening, log: Logger): void {
  const { base, console, metrics } = addresses
  const others = { ...console !== null && { console }, ...docs !== null && { docs }, ...metrics !== null && { metrics } }
  log.child({}, { level: 'info' }).info({ base, ...others }, 'listening')
  const request = exampleRequest(config, base, publicKey)
  const { isTTY } = process.stdout
  if (request === null || !(isTTY || publicKey !== null)) return
  // If standard output is not a terminal, it must contain only JSON lines.
  const stream = isTTY ? process.stdout : process.stderr
  stream.write(`\nTry it:\n\n${request}\n\n`)
}

/** ms. Without workers, no other process serves while this process drains. */
const UNCAUGHT_ERROR_DRAIN = 30_000

interface StopOptions {
  readonly gateway: RunningGateway
  readonly log: Logger
  readonly faults: UncaughtErrors
  readonly line: SupervisorChannel | null
  readonly control: ControlHandlers
  reload(): void
}

/** @returns the number of exchanges that were cut off */
function untilStopped({ gateway, log, faults, line, control, reload }: StopOptions): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const drain = (handsOver?: boolean): void => void gateway.drain(handsOver).then(resolve)
  faults.setGateway({
    abortExchange: error => gateway.abortExchange(error),
    drain: () => {
      // With workers, the other workers serve the same addresses while this worker drains.
      drain(line === null ? undefined : true)
      setTimeout(() => resolve(gateway.close()), UNCAUGHT_ERROR_DRAIN)
    },
  })
  const commands = {
    drain, close: () => resolve(gateway.close()), reload, metricsReport: () => gateway.metricsReport(),
    control: (request: ControlRequest) => (request.kind === 'status' ? control.status() : control.reload(request.by)),
  }
  if (line !== null) {
    line.handleCommands(commands)
    return promise
  }
  stopOnSignals(log, commands)
  return promise
}
