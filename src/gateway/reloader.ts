import { within } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { nextTurn } from '../base/next-turn.ts'
import { configChanges } from '../config/changes.ts'
import type { LoadedConfig } from '../config/load/load.ts'
import { ConfigError, placeOf, type Problem } from '../config/problem.ts'
import { fileProblem } from '../config/text/findings.ts'
import type { Config } from '../config/types.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import { buildGateway, activate, newBudgets, newCallerBudgets } from './build-gateway.ts'
import { readCertificate, type ParsedCertificate } from './listen/certificate.ts'
import { pendingKeys } from './pending-keys.ts'

export type ReloadResult =
  | {
    readonly applied: true
    /** Configuration keys that take effect only at the next restart. */
    readonly pending: readonly string[]
    /** The changes, in the format of `configChanges`. */
    readonly changes: readonly string[]
    readonly warnings: readonly Problem[]
  }
  | { readonly applied: false; readonly because: 'invalid'; readonly problems: readonly Problem[] }
  /** The reload was rejected because the gateway is shutting down. */
  | { readonly applied: false; readonly because: 'drain' }

export interface ReloaderOptions {
  readonly gateway: Gateway
  /** Starts the in-process simulator when a configuration needs it; resolves to its socket. */
  simulatorFor(config: Config): Promise<string | null>
  setCertificate(certificate: ParsedCertificate): void
}

/** Loads a configuration. @throws ConfigError if the configuration is invalid */
export type ConfigLoader = () => Promise<LoadedConfig>

const LEDGER_FLUSH_TIMEOUT_MS = 1_000

/**
 * Contains the current gateway, and replaces it at each reload. A reload applies completely or not at all: everything that can fail happens
 * before the one step that applies the configuration.
 */
export class Reloader {
  readonly #options: ReloaderOptions
  /** The configuration at the start. Its restart-only keys stay active. */
  readonly #startupConfig: Config
  #gateway: Gateway
  #lastReload: Promise<unknown> = Promise.resolve()
  #nextReload: { load: ConfigLoader; by: string; readonly done: Promise<ReloadResult> } | null = null

  constructor(options: ReloaderOptions) {
    this.#options = options
    this.#gateway = options.gateway
    this.#startupConfig = options.gateway.config
    activate(options.gateway, null)
  }

  get gateway(): Gateway {
    return this.#gateway
  }

  /**
   * Loads and applies a configuration. Only one reload runs at a time. All calls during a reload are combined to one further reload.
   * @param by who requests the reload, as in `ReloadEvent`
   */
  reload(load: ConfigLoader, by: string): Promise<ReloadResult> {
    if (this.#nextReload !== null) {
      Object.assign(this.#nextReload, { load, by })
      return this.#nextReload.done
    }
    // Wait for one turn of the event loop, so that several signals in a row become one reload.
    const done = this.#lastReload.then(nextTurn).then(() => {
      const next = this.#nextReload
      this.#nextReload = null
      return this.#run(next?.load ?? load, next?.by ?? by)
    })
    this.#nextReload = { load, by, done }
    this.#lastReload = done
    return done
  }

  async #run(load: ConfigLoader, by: string): Promise<ReloadResult> {
    const { log, sharedState, clock, config: before } = this.#gateway
    let after: Config
    let warnings: readonly Problem[]
    if (sharedState.shutdown !== null) return this.#rejectWhileDraining()
    try {
      const { config, ...loaded } = await load()
      // Give other work a turn, because it takes time to receive thousands of keys from the loader thread.
      await nextTurn()
      const certificate = readCertificate(config.server.tls)
      const simulatorSocket = await this.#options.simulatorFor(config)
      const unknown = newBudgets(config, this.#gateway).length + newCallerBudgets(config, this.#gateway.config).length
      if (unknown > 0) await waitForLedger(this.#gateway)
      if (sharedState.shutdown !== null) return this.#rejectWhileDraining()
      // From here on there must be no await, because the new gateway is built from the current state.
      this.#apply(buildGateway(config, sharedState, simulatorSocket, this.#gateway), loaded.warnings, certificate)
      after = config
      warnings = loaded.warnings
    } catch (error) {
      return this.#rejectInvalid(error, by)
    }
    const changes = configChanges(before, after)
    for (const problem of warnings) log.warn(`${placeOf(problem)}: ${problem.message}`)
    const { pending } = sharedState.reloads
    for (const key of pending) log.warn({ key }, `${key} changed: restart to apply it; the other changes are active`)
    log.info({ pending }, 'configuration reloaded')
    sharedState.reloads.log.add({ at: clock.wall(), applied: true, by, before: before.text, text: after.text, changes, problems: [] })
    return { applied: true, pending, changes, warnings }
  }

  /** Applies a configuration, in one step that cannot fail. */
  #apply(gateway: Gateway, warnings: readonly Problem[], certificate: ParsedCertificate | null): void {
    if (certificate !== null && this.#startupConfig.server.tls !== null) this.#options.setCertificate(certificate)
    activate(gateway, this.#gateway)
    this.#gateway = gateway
    const { clock, config, sharedState: { reloads } } = gateway
    const pending = pendingKeys(this.#startupConfig, config)
    Object.assign(reloads, { loadedAt: clock.wall(), warnings, failure: null, pending, applied: reloads.applied + 1 })
  }

  #rejectInvalid(error: unknown, by: string): ReloadResult {
    const { log, clock, sharedState, config } = this.#gateway
    const problems = problemsOf(error, config.file)
    const text = error instanceof ConfigError ? error.text : null
    sharedState.reloads.failure = { at: clock.wall(), problems, text }
    sharedState.reloads.rejected++
    const texts = problems.map(problem => `${placeOf(problem)}: ${problem.severity}: ${problem.message}`)
    log.error({ problems: texts }, 'not reloaded: the previous configuration stays active')
    sharedState.reloads.log.add({ at: clock.wall(), applied: false, by, before: config.text, text, changes: [], problems })
    return { applied: false, because: 'invalid', problems }
  }

  #rejectWhileDraining(): ReloadResult {
    this.#gateway.log.warn('not reloaded: the gateway is shutting down')
    return { applied: false, because: 'drain' }
  }
}

function problemsOf(error: unknown, file: string): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems
  return [fileProblem(file, 'error', messageOf(error))]
}

/** Waits until the ledger's file contains all spend so far, or until the timeout. */
async function waitForLedger({ accounts: { ledger }, clock }: Gateway): Promise<void> {
  if (ledger?.stats().healthy === true) await within(clock, LEDGER_FLUSH_TIMEOUT_MS, ledger.flush())
}
