import { hash } from 'node:crypto'
import type { Command } from 'commander'
import type { KeySummary } from '../../auth/key-record.ts'
import type { KeyWriter } from '../../auth/key-writer.ts'
import { openExistingKeys } from '../../cluster/keys/open-keys.ts'
import { isWellFormed } from '../../base/secrets/key-format.ts'
import { escapeControlCharacters } from '../../base/text-table.ts'
import { didYouMean } from '../../config/nearest.ts'
import type { Config } from '../../config/types.ts'
import { EXIT_CODES } from '../../process/exit.ts'
import { exitOnStoreError, fail, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from '../common/key-store-command.ts'

const HELP = `
When the command returns, the key is refused and its running requests are cut. For a leaked key, you
can give the key itself instead of its name. A text that is both a name and an id is the name.
A new key can have the same name; it continues the budget of the old one.

Examples:
  gateway keys revoke team-a
  gateway keys revoke --config /etc/gateway.yaml team-a
${EXIT_CODES.replace('failed while running', 'there is no such key, or a running gateway did not confirm')}`

export function keysRevokeCommand(): Command {
  return storeCommand('revoke')
    .description('Revoke a key that was created.')
    .argument('<which>', 'its name, its id in the list, or the key itself')
    .addHelpText('after', HELP)
    .action(revoke)
}

async function revoke(which: string, { config: from }: { config: string }, command: Command): Promise<void> {
  const { config, file } = keyStoreOf(from, command)
  const digest = isWellFormed(which) ? hash('sha256', which, 'buffer') : null
  await exitOnStoreError(file, command, async () => {
    using store = openExistingKeys(file, config.cluster)
    const found = store === null ? null : await find(store, digest, which)
    const configured = config.keys.find(key => (digest ? key.digest.equals(digest) : key.name === which))
    const isLive = found !== null && found.revokedAt === null
    if (configured && !isLive) fail(`"${configured.name}" is a key of ${from}: remove it there, or: gateway keys block --name ...`, command)
    if (store === null || found === null) return fail(await unknownKeyMessage(which, digest !== null, config, store), command)
    await store.revoke(found, Date.now(), operator())
    process.stdout.write(`${revocationText(found)}\n`)
    warnOfConfiguredDuplicate(found, config, from)
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    fail('a running gateway has not confirmed it, and may still accept the key; try again, or stop that gateway', command)
  })
}

async function find(store: KeyWriter, digest: Buffer | null, which: string): Promise<KeySummary | null> {
  if (digest !== null) return store.find('digest', digest)
  const found = await store.find('name', which)
  return found === null && /^[1-9]\d{0,14}$/.test(which) ? store.find('id', Number(which)) : found
}

function revocationText({ name, revokedAt }: KeySummary): string {
  return revokedAt === null
    ? `Revoked the key "${name}".`
    : `The key "${name}" was revoked already, on ${new Date(revokedAt).toISOString()}.`
}

function warnOfConfiguredDuplicate({ name, digest }: KeySummary, config: Config, from: string): void {
  const twin = config.keys.find(key => key.name === name || key.digest.equals(digest))
  if (twin === undefined) return
  const what = twin.digest.equals(digest) ? `the same key, as "${twin.name}"` : 'a key of this name'
  process.stderr.write(`warning: ${from} has ${what}; that one is still accepted\n`)
}

async function unknownKeyMessage(which: string, isKey: boolean, config: Config, store: KeyWriter | null): Promise<string> {
  // Do not print the text, because it may be a key.
  if (isKey) return 'no key has this value'
  const { keys } = await store?.list() ?? { keys: [] }
  const names = [...config.keys, ...keys.map(({ key }) => key)].map(({ name }) => name)
  return `no key is named "${escapeControlCharacters(which)}"${didYouMean(which, names)}`
}
