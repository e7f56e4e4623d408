import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { loadConfig, loadConfigText, type LoadedConfig } from '../../config/load/load.ts'
import { ConfigError, formatProblem, type Problem } from '../../config/problem.ts'
import { EXIT } from '../../process/exit.ts'

/** Problems as text. The text is coloured if the stream is a terminal with colours. */
export function problemText(problems: readonly Problem[], stream: Writable): string {
  const paint = (severity: string): string => styleText(['bold', severity === 'error' ? 'red' : 'yellow'], severity, { stream })
  return problems.map(problem => `${formatProblem(problem, paint)}\n`).join('\n')
}

/** Counts problems: `2 errors and 1 warning`. */
export function countText(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const warnings = problems.length - errors
  const counts = [plural(errors, 'error'), plural(warnings, 'warning')]
  return counts.filter(text => !text.startsWith('0')).join(' and ')
}

/** A number with its noun: `1 route`, `2 routes`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Loads the configuration. If it has errors, prints all problems on stderr, and ends the command with exit code 2. */
export function loadOrFail(file: string, command: Command): LoadedConfig {
  return exitOnConfigError(() => loadConfig(file, process.env), file, command)
}

/** Like `loadOrFail`, for a text that was read from the file before. */
export function loadTextOrFail(file: string, text: string, command: Command): LoadedConfig {
  return exitOnConfigError(() => loadConfigText(file, text, process.env), file, command)
}

/**
 * Like `loadOrFail`, for commands that need only `ledger`, `cluster` and the names of keys. Environment variables that other sections use
 * may be unset.
 */
export function loadForLedger(file: string, command: Command): LoadedConfig {
  return exitOnConfigError(() => loadConfig(file, process.env, ['ledger', 'cluster']), file, command)
}

function exitOnConfigError(load: () => LoadedConfig, file: string, command: Command): LoadedConfig {
  try {
    return load()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${problemText(error.problems, process.stderr)}\n`)
    return command.error(`${file}: ${countText(error.problems)}`, { exitCode: EXIT.usage })
  }
}
