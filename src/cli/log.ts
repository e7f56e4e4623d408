import pino from 'pino'
import type { Logger } from 'pino'
import type { LogLevel } from '../config/types.ts'
import { writeLinesWhole } from './log-line.ts'

export interface OpenLog {
  readonly log: Logger
  /** Resolves when all that was logged has been handed to the system. */
  flush(): Promise<void>
  /** The same at once, for the last words of a process that fails. */
  flushSync(): void
}

/** Bytes of lines that are handed to the system together, or what there is after so many milliseconds. */
const AT_ONCE = { minLength: 16_384, maxWrite: 32_768, periodicFlush: 100 }

/**
 * The log on standard output: lines for people on a terminal, otherwise one JSON
 * object a line, written without waiting.
 */
export async function openLog(level: LogLevel): Promise<OpenLog> {
  const options = {
    level,
    base: null, // whoever collects the lines knows the host and the process
    timestamp: isoTime(),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (process.stdout.isTTY) {
    const shape = { colorize: process.stdout.hasColors(), translateTime: 'SYS:HH:MM:ss.l', singleLine: true }
    const { default: pretty } = await import('pino-pretty')
    const log = pino(options, pretty({ ...shape, sync: true }))
    return { log, flush: () => Promise.resolve(), flushSync: () => undefined }
  }
  const destination = pino.destination({ dest: process.stdout.fd, sync: false, ...AT_ONCE })
  // A log that cannot be written, as on a full disk, is no reason to serve nobody.
  destination.on('error', () => undefined)
  const log = pino(options, destination)
  writeLinesWhole(log)
  return {
    log,
    flush: () => new Promise(resolve => destination.flush(() => resolve())),
    flushSync: () => destination.flushSync(),
  }
}

/** The time of a line, as pino wants it; written out once for all lines of a millisecond. */
function isoTime(): () => string {
  let at = Number.NaN
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== at) {
      at = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}
