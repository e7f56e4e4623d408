import { hash, randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import type { KeyWriter } from '../../auth/key-writer.ts'
import { openExistingKeys } from '../../cluster/keys/open-keys.ts'
import { generateKey } from '../../base/secrets/key-format.ts'
import { escapeControlCharacters } from '../../base/text-table.ts'
import { PREFIX_LENGTH } from '../../config/sections/keys.ts'
import { didYouMean } from '../../config/nearest.ts'
import type { Config } from '../../config/types.ts'
import { EXIT_CODES } from '../../process/exit.ts'
import { parseGrace } from './key-options.ts'
import { exitOnStoreError, fail, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from '../common/key-store-command.ts'
import { printSecret, requireReader } from './secret-output.ts'

const DEFAULT_GRACE = '24h'

const HELP = `
Prints the new secret on standard output, once. It works when the command returns. The old secret
works until the grace is over, so that clients can be changed one after the other. Name, models,
limits, budget and expiry of the key stay. --grace 0s refuses the old secret at once and cuts its
running requests.

Examples:
  gateway keys rotate team-a
  KEY=$(gateway keys rotate team-a --grace 7d)
${EXIT_CODES.replace('failed while running', 'there is no such key, or a running gateway did not confirm')}`

interface Options {
  readonly config: string
  /** ms for which the old secret stays valid. */
  readonly grace: number
}

export function keysRotateCommand(): Command {
  return storeCommand('rotate')
    .description('Replace the secret of a created key, and print the new one once.')
    .argument('<name>', 'the name of the key')
    .option('-g, --grace <duration>', 'how long the old secret works, such as 24h or 7d', parseGrace, parseGrace(DEFAULT_GRACE))
    .addHelpText('after', HELP)
    .action(rotate)
}

async function rotate(name: string, { config: from, grace }: Options, command: Command): Promise<void> {
  requireReader(command)
  const { config, file } = keyStoreOf(from, command)
  await exitOnStoreError(file, command, async () => {
    using store = openExistingKeys(file, config.cluster)
    const found = await store?.find('name', name) ?? null
    if (store === null || found === null || found.revokedAt !== null) return fail(await unknownKeyMessage(name, config, from, store), command)
    if ((await store.list()).blocks.some(({ digest }) => digest.equals(found.digest))) {
      return fail(`"${name}" is blocked, and its new secret would not be; unblock it first, or revoke it`, command)
    }
    const secret = generateKey(randomBytes)
    const now = Date.now()
    const oldValidUntil = now + grace
    await store.rotate(found, {
      digest: hash('sha256', secret, 'buffer'), prefix: secret.slice(0, PREFIX_LENGTH), oldValidUntil,
    }, now, operator())
    const old = grace === 0 ? 'is refused' : `works until ${new Date(oldValidUntil).toISOString()}`
    process.stderr.write(`Rotated the key "${name}". The old secret ${old}.\nThe new one is shown only once:\n`)
    await printSecret(secret, why => fail(`the new secret could not be printed (${why}); rotate the key again`, command))
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    process.stderr.write('warning: a running gateway has not loaded it yet and may refuse it for a while\n')
  })
}

async function unknownKeyMessage(name: string, config: Config, from: string, store: KeyWriter | null): Promise<string> {
  if (config.keys.some(key => key.name === name)) {
    return `"${name}" is a key of ${from}: add a second key there, change the clients, then remove the first`
  }
  const { keys } = await store?.list() ?? { keys: [] }
  const names = keys.filter(({ revokedAt }) => revokedAt === null).map(({ key }) => key.name)
  return `no active key is named "${escapeControlCharacters(name)}"${didYouMean(name, names)}`
}
