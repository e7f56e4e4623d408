import { isatty } from 'node:tty'
import type { Logger } from 'pino'

interface StopHandlers {
  first(signal: NodeJS.Signals): void
  second(signal: NodeJS.Signals): void
  /** Called at SIGHUP. If absent, SIGHUP ends the process. */
  reload?(): void
}

/** ms within which one key press may send a signal twice. */
const REPEAT_WINDOW = 200

/**
 * Defers SIGHUP while the process starts: an operator can request a reload at any time, but the signal would end the process. Does nothing
 * on a terminal, where SIGHUP means that the terminal was closed.
 * @returns a function that sends a deferred signal again
 */
export function deferHangups(): () => void {
  if (isatty(0)) return () => undefined
  let came = false
  const note = (): void => { came = true }
  process.on('SIGHUP', note)
  return () => {
    process.off('SIGHUP', note)
    if (came) process.kill(process.pid, 'SIGHUP')
  }
}

/**
 * Calls `first` at the first SIGTERM or SIGINT, and `second` at the next one. Later ones are ignored. If npm started the process on a
 * terminal, one Ctrl-C sends the signal twice, from the terminal and from npm: the second does not count.
 * SIGHUP calls `reload`. If the terminal of the process was closed, SIGHUP stops the gateway instead.
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

interface Stoppable { drain(): void, close(): void, reload(): void }

/** Drains at the first stop signal, closes at the second, and reloads at SIGHUP. Logs each signal. */
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
