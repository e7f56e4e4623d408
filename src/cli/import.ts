import { writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { FILE_MODE } from '../base/files/private-file.ts'
import { UnreadableError, readText } from '../config/text/read.ts'
import { SourceText } from '../config/text/source-text.ts'
import { importLitellm, type Imported } from '../import/litellm.ts'
import { readVirtualKeys } from '../import/litellm-keys.ts'
import type { Note } from '../import/litellm-notes.ts'
import { ImportError } from '../import/source.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { plural } from './common/problems.ts'

const HELP = `
Writes an equivalent gateway.yaml. What has no equivalent is listed on standard error, with its place
in the file. Provider keys are never copied: the result reads them from environment variables, and
the list names these.

With --keys clients keep their keys: LiteLLM stores the SHA-256 of each, as the gateway does. Their limits,
budgets and lists of models come along. Write the table with
  psql -c 'COPY "LiteLLM_VerificationToken" TO STDOUT CSV HEADER' > keys.csv

An existing file is never overwritten.

Examples:
  gateway import litellm config.yaml > gateway.yaml
  gateway import litellm config.yaml --output gateway.yaml && gateway check
${EXIT_CODES.replace('wrong option or configuration', 'wrong option, or a file that cannot be imported')}`

export function importCommand(): Command {
  const litellm = new Command('litellm')
    .description('Convert a configuration of the LiteLLM proxy.')
    .argument('<file>', 'the config.yaml of LiteLLM')
    .option('-o, --output <file>', 'write to a new file instead of standard output')
    .option('--keys <file>', "also import LiteLLM's virtual keys: its table LiteLLM_VerificationToken as CSV with a header")
    .addHelpText('after', HELP)
    .action(fromLitellm)
  return new Command('import')
    .description('Convert the configuration of another gateway.')
    .addCommand(litellm)
}

function fromLitellm(file: string, { output, keys: table }: { output?: string, keys?: string }, command: Command): void {
  const keys = table === undefined ? null : readFrom(table, readVirtualKeys, command)
  const imported = readFrom(file, text => importLitellm(text, keys?.list), command)
  if (output === undefined) process.stdout.write(imported.yaml)
  else write(output, imported.yaml, command)
  process.stderr.write(report(imported, [...noteLines(file, imported.notes), ...noteLines(table, keys?.notes)]))
}

function readFrom<T>(file: string, read: (text: string) => T, command: Command): T {
  try {
    return read(readText(file))
  } catch (error) {
    if (!(error instanceof ImportError) && !(error instanceof UnreadableError)) throw error
    const place = error instanceof UnreadableError ? positionPrefix(error) : ''
    return command.error(`error: cannot import ${file}: ${place}${error.message}`, { exitCode: EXIT.usage })
  }
}

/** `line:column: ` of an error; empty if the error has no position. */
function positionPrefix({ place }: UnreadableError): string {
  if (place === null) return ''
  const { line, column } = new SourceText(place.text).position(place.offset)
  return `${line}:${column}: `
}

function write(output: string, yaml: string, command: Command): void {
  try {
    writeFileSync(output, yaml, { flag: 'wx', mode: FILE_MODE })
  } catch (error) {
    if (!isSystemError(error)) throw error
    const exists = error.code === 'EEXIST'
    const reason = exists ? 'it exists already, and is left as it is' : error.message
    command.error(`error: cannot write ${output}: ${reason}`, { exitCode: exists ? EXIT.usage : EXIT.failed })
  }
}

function noteLines(file = '', notes: readonly Note[] = []): string[] {
  return notes.map(({ place, setting, text }) => `${file}:${place}: ${setting}: ${text}`)
}

function report({ variables }: Imported, lines: readonly string[]): string {
  const heading = lines.length === 0 ? 'Everything has an equal.' : `${plural(lines.length, 'setting')} without an equal:`
  const needs = variables.length === 0 ? [] : [`Needs in the environment: ${variables.join(', ')}`]
  return `${[heading, ...lines, ...needs].join('\n')}\n`
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}
