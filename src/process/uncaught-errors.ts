import { EXIT } from './exit.ts'
import type { OpenLog } from './log.ts'

/** What can be done about an error that nobody caught, once the gateway serves. */
interface FailingGateway {
  /** Ends the exchange in whose course it was thrown; false when that was none that still runs. */
  abortExchange(error: unknown): boolean
  /** Begins to end the process in order. */
  drain(): void
}

export interface UncaughtErrors {
  /** The process ends because of one. */
  readonly fatal: boolean
  /** From now on a fault need not end the process at once. */
  setGateway(gateway: FailingGateway): void
}

/**
 * Watches for errors that nobody caught, rejections included. Each exchange has
 * its state for itself, so one in the course of an exchange ends that exchange and
 * nothing else. After any other error the state is unknown: the running
 * exchanges may finish, no new ones are taken, and the process fails, so that its
 * supervisor starts another. Before the gateway serves, the process ends at once.
 */
export function watchUncaughtErrors({ log, flushSync }: OpenLog): UncaughtErrors {
  let gateway: FailingGateway | null = null
  let fatal = false
  process.on('uncaughtException', error => {
    if (gateway?.abortExchange(error)) {
      log.error(error, 'internal error: one request was ended')
      return
    }
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
    get fatal() {
      return fatal
    },
    setGateway: serving => {
      gateway = serving
    },
  }
}
