import { EXIT } from './exit.ts'
import type { OpenLog } from './log.ts'

/** The parts of a serving gateway that the handling of uncaught errors needs. */
interface FailingGateway {
  /** Ends the exchange in whose asynchronous context the error was thrown. @returns false = no running exchange */
  abortExchange(error: unknown): boolean
  /** Starts to end the process in an orderly way. */
  drain(): void
}

export interface UncaughtErrors {
  /** true if the process ends because of an uncaught error. */
  readonly fatal: boolean
  /** Sets the gateway. From then on, an uncaught error does not have to end the process at once. */
  setGateway(gateway: FailingGateway): void
}

/**
 * Handles uncaught errors, including rejections. An error in the context of an exchange ends only that exchange, because exchanges share no
 * state. After any other error the state is unknown: running exchanges may finish, no new exchanges are accepted, and the process fails, so
 * that its supervisor starts another process. If the gateway does not serve yet, the process ends at once.
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
