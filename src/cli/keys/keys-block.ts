import type { Command } from 'commander'
import { callerDigest } from '../../auth/callers/caller-of.ts'
import { digestsOf } from '../../auth/keyring.ts'
import { openExistingKeys, openKeys } from '../../cluster/keys/open-keys.ts'
import { escapeControlCharacters } from '../../base/text-table.ts'
import { didYouMean } from '../../config/nearest.ts'
import { EXIT, EXIT_CODES } from '../../process/exit.ts'
import { exitOnStoreError, fail, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from '../common/key-store-command.ts'

const BLOCK_EXIT_CODES = EXIT_CODES.replace('failed while running', 'there is no such key, or a running gateway did not confirm')

const BLOCK_HELP = `
For a leaked key of gateway.yaml, or for a while for a key that was made with 'gateway keys create'
(permanently: 'gateway keys revoke'), or for a caller with a token. When the command returns, the key is refused and its running
requests are cut. It stays blocked until 'gateway keys unblock', also if the file changes.

Examples:
  gateway keys block team-a
  gateway keys block corp:alice@example.com
${BLOCK_EXIT_CODES}`

const UNBLOCK_HELP = `
Examples:
  gateway keys unblock team-a
${BLOCK_EXIT_CODES}`

export function keysBlockCommand(): Command {
  return blockCommand('block', 'Block a key or a caller.', BLOCK_HELP, true)
}

export function keysUnblockCommand(): Command {
  return blockCommand('unblock', 'Unblock a key or a caller.', UNBLOCK_HELP, false)
}

interface Options {
  readonly config: string
  readonly name?: string
}

function blockCommand(name: string, description: string, help: string, blocks: boolean): Command {
  return storeCommand(name)
    .description(description)
    .argument('[name]', 'the name of the key or caller')
    .option('-n, --name <name>', 'the same as an option')
    .addHelpText('after', help)
    .action((argument: string | undefined, { config, name = argument }: Options, command: Command) => {
      if (name === undefined) return command.error("error: missing required argument 'name'", { exitCode: EXIT.usage })
      return changeBlock(config, name, blocks, command)
    })
}

async function changeBlock(from: string, name: string, blocks: boolean, command: Command): Promise<void> {
  const { config, file } = keyStoreOf(from, command)
  await exitOnStoreError(file, command, async () => {
    const configured = config.keys.find(key => key.name === name)
    // The digest is unknown, for example because the variable with the key is not set for this command.
    if (configured?.digest.length === 0) {
      const remedy = `set the variable that ${from} reads it from, or use the console`
      return fail(`the value of "${name}" is not known here: ${remedy}`, command)
    }
    using existing = openExistingKeys(file, config.cluster)
    const stored = (await existing?.list())?.keys.filter(({ revokedAt }) => revokedAt === null).map(({ key }) => key) ?? []
    const isCaller = config.callers.some(issuer => name.startsWith(`${issuer.name}:`))
    const key = configured ?? stored.find(key => key.name === name)
    // A created key can have the name of a caller: then both are meant.
    const digests = [...key === undefined ? [] : digestsOf(key), ...isCaller ? [callerDigest(name)] : []]
    if (digests.length === 0) {
      const names = [...config.keys, ...stored].map(key => key.name)
      return fail(`${from} has no key named "${escapeControlCharacters(name)}"${didYouMean(name, names)}`, command)
    }
    using opened = existing === null && blocks ? openKeys(file, config.cluster) : null
    const store = existing ?? opened
    if (store === null) return fail(`"${name}" is not blocked`, command)
    let isNew = false
    for (const digest of digests) {
      const isChanged = blocks
        ? await store.block({ name, digest }, Date.now(), operator())
        : await store.unblock({ name, digest }, Date.now(), operator())
      isNew ||= isChanged
    }
    if (!isNew && !blocks) return fail(`"${name}" is not blocked`, command)
    const what = isCaller ? 'caller' : 'key'
    const done = `${blocks ? 'Blocked' : 'Unblocked'} the ${what} "${name}".`
    process.stdout.write(`${isNew ? done : `The ${what} "${name}" was blocked already.`}\n`)
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    fail('a running gateway has not confirmed it; try again, or stop that gateway', command)
  })
}
