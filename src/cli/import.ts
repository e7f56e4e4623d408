import { writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { UnreadableError, readText } from '../config/read.ts'
import { SourceText } from '../config/source-text.ts'
import { importLitellm } from '../import/litellm.ts'
import type { Imported } from '../import/litellm.ts'
import { ImportError } from '../import/source.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { plural } from './problems.ts'

const HELP = `
Writes an equivalent gateway.yaml. What has no equivalent is listed on standard error, with its place
in the file. Provider keys are never copied: the result reads them from environment variables, and
the list names these.

An existing file is never overwritten.

Examples:
  gateway import litellm config.yaml > gateway.yaml
  gateway import litellm config.yaml --output gateway.yaml && gateway check
${EXIT_CODES.replace('wrong option or configuration', 'wrong option, or a file that cannot be imported')}`

/** `gateway import`: makes a configuration from that of another gateway. */
export function importCommand(): Command {
  const litellm = new Command('litellm')
    .description('Convert a configuration of the LiteLLM proxy.')
    .argument('<file>', 'the config.yaml of LiteLLM')
    .option('-o, --output <file>', 'write to a new file instead of standard output')
    .addHelpText('after', HELP)
    .action(fromLitellm)
  return new Command('import')
    .description('Convert the configuration of another gateway.')
    .addCommand(litellm)
}

function fromLitellm(file: string, { output }: { output?: string }, command: Command): void {
  const imported = read(file, command)
  if (output === undefined) process.stdout.write(imported.yaml)
  else write(output, imported.yaml, command)
  process.stderr.write(report(file, imported))
}

function read(file: string, command: Command): Imported {
  try {
    return importLitellm(readText(file))
  } catch (error) {
    if (!(error instanceof ImportError) && !(error instanceof UnreadableError)) throw error
    const place = error instanceof UnreadableError ? positionPrefix(error) : ''
    return command.error(`error: cannot import ${file}: ${place}${error.message}`, { exitCode: EXIT.usage })
  }
}

/** `line:column: `, or nothing where it has no place. */
function positionPrefix({ place }: UnreadableError): string {
  if (place === null) return ''
  const { line, column } = new SourceText(place.text).position(place.offset)
  return `${line}:${column}: `
}

function write(output: string, yaml: string, command: Command): void {
  try {
    writeFileSync(output, yaml, { flag: 'wx' })
  } catch (error) {
    if (!isSystemError(error)) throw error
    const exists = error.code === 'EEXIST'
    const reason = exists ? 'it exists already, and is left as it is' : error.message
    command.error(`error: cannot write ${output}: ${reason}`, { exitCode: exists ? EXIT.usage : EXIT.failed })
  }
}

function report(file: string, { notes, variables }: Imported): string {
  const lines = notes.map(({ place, setting, text }) => `${file}:${place}: ${setting}: ${text}`)
  const heading = notes.length === 0
    ? 'Everything has an equal.'
    : `${plural(notes.length, 'setting')} without an equal:`
  const needs = variables.length === 0 ? [] : [`Needs in the environment: ${variables.join(', ')}`]
  return `${[heading, ...lines, ...needs].join('\n')}\n`
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}
