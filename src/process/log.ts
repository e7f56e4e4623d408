import { constants, fstatSync, openSync } from 'node:fs'
import pino from 'pino'
import type { Logger } from 'pino'
import type { LogLevel } from '../config/types.ts'
import { LogDestination } from './log-destination.ts'
import { escapeTerminalControl } from './terminal-control.ts'

export interface OpenLog {
  readonly log: Logger
  /** Resolves when all lines have been passed to the system. */
  flush(): Promise<void>
  /** Writes synchronously, for the last lines of a process that fails. */
  flushSync(): void
}

/** Logs to standard output without blocking. On a terminal, lines are readable text; otherwise each line is one JSON object. */
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
    // Escape the escapes too, because pino-pretty would decode them.
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
 * Opens a pipe again to get a separate file description, if the system supports it. When node starts a child process, or a child process
 * ends, node changes the blocking mode of a shared description: other processes, such as workers, would then block forever.
 */
function reopenPipe(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    // The system does not support this, or this user has no permission.
    return fd
  }
}

/** Logs only these fields of an error, because libraries attach requests with their credentials to errors. */
function errorFields(error: Error): object {
  const { type, message, stack, code } = pino.stdSerializers.err(error)
  return { type, message, stack, ...code !== undefined && { code: code as unknown } }
}

/** Returns the time in pino's format. All lines of the same ms share one text. */
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
