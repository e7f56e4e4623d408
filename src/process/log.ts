import { constants, fstatSync, openSync } from 'node:fs'
import pino from 'pino'
import type { Logger } from 'pino'
import type { LogLevel } from '../config/types.ts'
import { LogDestination } from './log-destination.ts'
import { escapeTerminalControl } from './log-line.ts'

export interface OpenLog {
  readonly log: Logger
  /** Resolves when all that was logged has been handed to the system. */
  flush(): Promise<void>
  /** The same at once, for the last words of a process that fails. */
  flushSync(): void
}

/**
 * The log on standard output: lines for people on a terminal, otherwise one JSON
 * object a line, written without waiting.
 */
export async function openLog(level: LogLevel): Promise<OpenLog> {
  const options = {
    level,
    base: null, // the log collector adds host and process
    timestamp: isoTime(),
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields },
  }
  if (process.stdout.isTTY) {
    const shape = { colorize: process.stdout.hasColors(), translateTime: 'SYS:HH:MM:ss.l', singleLine: true }
    const { default: pretty } = await import('pino-pretty')
    const shown = pretty({ ...shape, sync: true })
    // It would write anew what is escaped: so the escapes themselves are what is to be shown.
    const log = pino(options, { write: line => shown.write(escapeTerminalControl(line, '\\\\u')) })
    return { log, flush: () => Promise.resolve(), flushSync: () => undefined }
  }
  const lines = new LogDestination(reopenPipe(process.stdout.fd))
  const log = pino(options, lines)
  lines.on('dropped', lost => {
    log.warn({ lines: lost }, 'log lines were dropped: standard output was not read fast enough')
  })
  return { log, flush: () => lines.flush(), flushSync: () => lines.flushSync() }
}

/**
 * A pipe by an opening of its own, where the system has one. Whether a write waits for the reader
 * belongs to an opening, and node changes that for all processes that share it whenever it starts
 * one of them and when one ends: the others, workers say, would then wait for ever.
 */
function reopenPipe(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    // The system has none, or this user may not.
    return fd
  }
}

/** What an error says. Libraries hang requests on errors, with their credentials. */
function errorFields(error: Error): object {
  const { type, message, stack, code } = pino.stdSerializers.err(error)
  return { type, message, stack, ...code !== undefined && { code: code as unknown } }
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
