import { messageOf } from '../base/message-of.ts'
import type { LoadedConfig } from '../config/load.ts'
import { ConfigError, placeOf } from '../config/problem.ts'
import type { Problem } from '../config/problem.ts'
import type { Config } from '../config/types.ts'
import type { Gateway } from '../context/gateway.ts'
import { buildGateway, activate, newBudgets } from './build-gateway.ts'
import { readCertificate } from './certificate.ts'
import type { ParsedCertificate } from './certificate.ts'
import { pendingKeys } from './pending-keys.ts'

/** What became of an attempt to change the configuration. */
export type ReloadResult =
  | { readonly applied: true; /** Keys that wait for the next start. */ readonly pending: readonly string[] }
  /** `drain`: the gateway is about to end. */
  | { readonly applied: false; readonly because: 'invalid' | 'drain' }

export interface ReloaderOptions {
  readonly gateway: Gateway
  /** Starts the in-process simulator where a configuration is the first that needs it. */
  simulatorFor(config: Config): Promise<string | null>
  /** Shows another certificate to clients. */
  setCertificate(certificate: ParsedCertificate): void
}

/** Raises ConfigError when there is nothing to put in force. */
export type ConfigLoader = () => Promise<LoadedConfig>

/** Milliseconds that a new budget waits for the ledger to be up to date. */
const LEDGER_FLUSH_TIMEOUT = 1_000

/**
 * The gateway that is in force, and how another takes its place. A configuration
 * comes into force as a whole or not at all: everything that can fail happens
 * before the one step in which it does.
 */
export class Reloader {
  readonly #options: ReloaderOptions
  /** The configuration that the process was started with: it decided what only a start can decide. */
  readonly #startupConfig: Config
  #gateway: Gateway
  #lastReload: Promise<unknown> = Promise.resolve()
  #nextReload: { load: ConfigLoader; readonly done: Promise<ReloadResult> } | null = null

  constructor(options: ReloaderOptions) {
    this.#options = options
    this.#gateway = options.gateway
    this.#startupConfig = options.gateway.config
    activate(options.gateway, null)
  }

  /** The one that new exchanges begin with. */
  get gateway(): Gateway {
    return this.#gateway
  }

  /**
   * Loads a configuration and puts it in force. One at a time; those that are
   * asked for while one is under way are one.
   */
  reload(load: ConfigLoader): Promise<ReloadResult> {
    if (this.#nextReload !== null) {
      this.#nextReload.load = load
      return this.#nextReload.done
    }
    // A turn of the event loop, in which a storm of signals becomes one.
    const done = this.#lastReload.then(nextEventLoopTurn).then(() => {
      const next = this.#nextReload
      this.#nextReload = null
      return this.#run(next?.load ?? load)
    })
    this.#nextReload = { load, done }
    this.#lastReload = done
    return done
  }

  async #run(load: ConfigLoader): Promise<ReloadResult> {
    const { log, sharedState: lasting } = this.#gateway
    if (lasting.draining || lasting.handingOver) return this.#rejectWhileDraining()
    try {
      const { config, warnings } = await load()
      // To take thousands of keys over from the thread that read them is a step, and what follows is another.
      await nextEventLoopTurn()
      const certificate = readCertificate(config.server.tls)
      const simulatorSocket = await this.#options.simulatorFor(config)
      if (newBudgets(config, this.#gateway).length > 0) await waitForLedger(this.#gateway)
      if (lasting.draining || lasting.handingOver) return this.#rejectWhileDraining()
      // From here on nothing waits: what is built is of this moment.
      this.#apply(buildGateway(config, lasting, simulatorSocket, this.#gateway), certificate)
      for (const problem of warnings) log.warn(`${placeOf(problem)}: ${problem.message}`)
    } catch (error) {
      return this.#rejectInvalid(error)
    }
    const { pending } = lasting.reloads
    for (const key of pending) {
      log.warn({ key }, `${key} has changed: that takes a restart; the rest is in force`)
    }
    log.info({ pending }, 'configuration reloaded')
    return { applied: true, pending }
  }

  /** The step: nothing here fails. */
  #apply(gateway: Gateway, certificate: ParsedCertificate | null): void {
    if (certificate !== null && this.#startupConfig.server.tls !== null) this.#options.setCertificate(certificate)
    activate(gateway, this.#gateway)
    this.#gateway = gateway
    Object.assign(gateway.sharedState.reloads, {
      loadedAt: gateway.clock.wall(),
      failure: null,
      pending: pendingKeys(this.#startupConfig, gateway.config),
    })
  }

  #rejectInvalid(error: unknown): ReloadResult {
    const { log, clock, sharedState: lasting } = this.#gateway
    const problems = problemsOf(error, this.#gateway.config.file)
    lasting.reloads.failure = { at: clock.wall(), problems }
    log.error(
      { problems: problems.map(problem => `${placeOf(problem)}: ${problem.severity}: ${problem.message}`) },
      'not reloaded: the configuration before stays in force',
    )
    return { applied: false, because: 'invalid' }
  }

  #rejectWhileDraining(): ReloadResult {
    this.#gateway.log.warn('not reloaded: the gateway is about to end')
    return { applied: false, because: 'drain' }
  }
}

/** Everybody else's turn. */
function nextEventLoopTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

function problemsOf(error: unknown, file: string): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems
  const message = messageOf(error)
  return [{ severity: 'error', file, line: null, column: null, message, excerpt: null }]
}

/** Resolves when the ledger's file has all that was spent so far, or when that takes too long. */
async function waitForLedger({ accounts: { ledger }, clock }: Gateway): Promise<void> {
  if (ledger?.stats().healthy !== true) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const deadline = clock.setTimeout(resolve, LEDGER_FLUSH_TIMEOUT)
  await Promise.race([ledger.flush(), promise])
  deadline.cancel()
}
