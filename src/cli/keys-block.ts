import type { Command } from 'commander'
import { openExistingKeys, openKeys } from '../auth/open-keys.ts'
import { escapeControlCharacters } from '../base/text-table.ts'
import { didYouMean } from '../config/nearest.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { exitOnStoreError, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from './key-store-command.ts'

const BLOCK_EXIT_CODES = EXIT_CODES.replace(
  'failed while running', 'there is no such key, or a running gateway did not confirm',
)

const BLOCK_HELP = `
For a leaked key of gateway.yaml. When the command returns, the key is refused and its running
requests are cut. It stays blocked until 'gateway keys unblock', also if the file changes. For a key
that was made with 'gateway keys create', use 'gateway keys revoke'.

Examples:
  gateway keys block --name team-a
${BLOCK_EXIT_CODES}`

const UNBLOCK_HELP = `
Examples:
  gateway keys unblock --name team-a
${BLOCK_EXIT_CODES}`

/** `gateway keys block`: shuts out a key of the configuration without a change of the file. */
export function keysBlockCommand(): Command {
  return blockCommand('block', 'Block a key of gateway.yaml.', BLOCK_HELP, true)
}

/** `gateway keys unblock`: lets it in again. */
export function keysUnblockCommand(): Command {
  return blockCommand('unblock', 'Unblock a key of gateway.yaml.', UNBLOCK_HELP, false)
}

interface Options {
  readonly config: string
  readonly name: string
}

function blockCommand(name: string, description: string, help: string, blocks: boolean): Command {
  return storeCommand(name)
    .description(description)
    .requiredOption('-n, --name <name>', 'the name in gateway.yaml')
    .addHelpText('after', help)
    .action((options: Options, command: Command) => changeBlock(options, blocks, command))
}

async function changeBlock({ config: from, name }: Options, blocks: boolean, command: Command): Promise<void> {
  const { config, file } = keyStoreOf(from, command)
  const key = config.keys.find(key => key.name === name)
  if (key === undefined) return fail(unknownKeyMessage(name, from, config.keys.map(key => key.name)), command)
  // As where a variable that holds the key is not set for this command.
  if (key.digest.length === 0) {
    const remedy = `set the variable that ${from} reads it from, or use the console`
    return fail(`the value of "${name}" is not known here: ${remedy}`, command)
  }
  await exitOnStoreError(file, command, async () => {
    using store = blocks ? openKeys(file, config.cluster) : openExistingKeys(file, config.cluster)
    if (store === null) return fail(`"${name}" is not blocked`, command)
    const isNew = blocks
      ? await store.block(key, Date.now(), operator())
      : await store.unblock(key, Date.now(), operator())
    if (!isNew && !blocks) return fail(`"${name}" is not blocked`, command)
    const done = `${blocks ? 'Blocked' : 'Unblocked'} the key "${name}".`
    process.stdout.write(`${isNew ? done : `The key "${name}" was blocked already.`}\n`)
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    fail('a running gateway has not confirmed it; try again, or stop that gateway', command)
  })
}

function unknownKeyMessage(name: string, from: string, names: readonly string[]): string {
  return `${from} has no key named "${escapeControlCharacters(name)}"${didYouMean(name, names)}`
}

function fail(message: string, command: Command): never {
  return command.error(`error: ${message}`, { exitCode: EXIT.failed })
}
