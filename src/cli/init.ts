import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { FILE_MODE } from '../base/files/private-file.ts'
import { SCHEMA_FILE } from '../config/json-schema.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'

const EXAMPLE_FILE = new URL('../../gateway.yaml', import.meta.url)

const HELP = `
The file has comments and a simulated provider, so 'gateway serve' works with it. Examples for real
providers are commented out. The first line names the schema for editors: by a relative path if the
gateway is installed below the file, otherwise by an absolute path.

An existing file is never overwritten.

Examples:
  gateway init
  gateway init --config /etc/gateway.yaml
${EXIT_CODES.replace('wrong option or configuration', 'wrong option, or the file exists')}`

const REASONS: ReadonlyMap<string, string> = new Map(Object.entries({
  EEXIST: 'it exists already, and is left as it is',
  ENOENT: 'its directory does not exist',
  ENOTDIR: 'its directory does not exist',
}))

export function initCommand(): Command {
  return new Command('init')
    .description('Write a commented configuration to start from.')
    .addOption(configOption('the file to write'))
    .addHelpText('after', HELP)
    .action(init)
}

function init({ config: file }: { config: string }, command: Command): void {
  const example = readFileSync(EXAMPLE_FILE, 'utf8')
  const modeline = `# yaml-language-server: $schema=${schemaReference(file)}\n`
  const text = modeline + example.slice(example.indexOf('\n') + 1)
  try {
    writeFileSync(file, text, { flag: 'wx', mode: FILE_MODE })
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    const reason = REASONS.get(code)
    command.error(`error: cannot write ${file}: ${reason ?? message}`, { exitCode: reason === undefined ? EXIT.failed : EXIT.usage })
  }
  process.stdout.write(`Wrote ${file}. Next: gateway serve --config ${file}\n`)
}

/** The reference to the schema, from which an editor finds the schema of the file. */
function schemaReference(file: string): string {
  const schema = fileURLToPath(SCHEMA_FILE)
  const path = relative(dirname(resolve(file)), schema).split(sep).join('/')
  const isBelow = !path.startsWith('../') && !/^[A-Za-z]:/.test(path)
  return isBelow ? `./${path}` : pathToFileURL(schema).href
}
