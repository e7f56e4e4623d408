import { EXIT } from './exit.ts'
import type { OpenLog } from './log.ts'

/** Handles uncaught errors once the gateway serves. */
interface FailingGateway {
  /** Ends the exchange in whose async context the error was thrown; false = no running exchange. */
  abortExchange(error: unknown): boolean
  /** Begins to end the process properly. */
  drain(): void
}

export interface UncaughtErrors {
  /** The process ends because of an uncaught error. */
  readonly fatal: boolean
  /** From now on an uncaught error need not end the process at once. */
  setGateway(gateway: FailingGateway): void
}

/**
 * Handles uncaught errors, rejections included. An error in the context of an exchange ends only that exchange, because
 * exchanges share no state. After any other error the state is unknown: running exchanges may finish, no new ones are accepted,
 * and the process fails, so that its supervisor starts another one. Before the gateway serves, the process ends at once.
 */
export function watchUncaughtErrors({ log, flushSync }: OpenLog): UncaughtErrors {
  let gateway: FailingGateway | null = null
  let fatal = false
  process.on('uncaughtException', error => {
    if (gateway?.abortExchange(error)) return log.error(error, 'internal error: one request was ended')
    log.fatal(error, fatal || !gateway ? 'internal error' : 'internal error: the gateway is shutting down')
    if (gateway === null) {
      flushSync()
      process.exit(EXIT.failed)
    }
    process.exitCode = EXIT.failed
    if (!fatal) gateway.drain()
    fatal = true
  })
  return {
    get fatal() { return fatal },
    setGateway: serving => { gateway = serving },
  }
}
