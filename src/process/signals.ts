import { isatty } from 'node:tty'
import type { Logger } from 'pino'

interface StopHandlers {
  first(signal: NodeJS.Signals): void
  second(signal: NodeJS.Signals): void
  /** At a SIGHUP; without it that ends the process. */
  reload?(): void
}

/** Milliseconds within which one key press may arrive a second time. */
const REPEAT_WINDOW = 200

/**
 * Holds back SIGHUP while the process starts, because the signal would end it. An operator can ask for a reload
 * right after the start. Not on a terminal, which may go.
 *
 * @returns sends what came again, when it is listened to
 */
export function deferHangups(): () => void {
  if (isatty(0)) return () => undefined
  let came = false
  const note = (): void => {
    came = true
  }
  process.on('SIGHUP', note)
  return () => {
    process.off('SIGHUP', note)
    if (came) process.kill(process.pid, 'SIGHUP')
  }
}

/**
 * Calls `first` at the first SIGTERM or SIGINT and `second` at the next; what
 * comes later is ignored. On a terminal, Ctrl-C reaches the process from the
 * terminal and once more from npm where npm started it: that echo does not count.
 *
 * SIGHUP calls `reload`, unless it means that the terminal of the process was
 * closed. Then it stops the gateway.
 */
export function onStopSignals({ first, second, reload }: StopHandlers): void {
  const onTerminal = isatty(0)
  let count = 0
  let firstAt = 0
  const stop = (signal: NodeJS.Signals): void => {
    const isEcho = signal === 'SIGINT' && onTerminal && performance.now() - firstAt < REPEAT_WINDOW
    if (count === 1 && isEcho) return
    count++
    if (count === 1) {
      firstAt = performance.now()
      first(signal)
    } else if (count === 2) {
      second(signal)
    }
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  if (reload === undefined) return
  process.on('SIGHUP', signal => {
    if (onTerminal && !isatty(0)) stop(signal)
    else reload()
  })
}

interface Stoppable {
  drain(): void
  close(): void
  reload(): void
}

/**
 * Drains at the first stop signal, closes at the second, reloads at SIGHUP, and logs each.
 *
 * @param log takes one line per signal
 * @param target the gateway or the supervisor of its workers
 */
export function stopOnSignals(log: Logger, target: Stoppable): void {
  onStopSignals({
    first: signal => {
      log.info({ signal }, 'draining')
      target.drain()
    },
    second: signal => {
      log.warn({ signal }, 'closing now')
      target.close()
    },
    reload: () => {
      log.info({ signal: 'SIGHUP' }, 'reading the configuration again')
      target.reload()
    },
  })
}
