import { hash } from 'node:crypto'
import type { Command } from 'commander'
import { KeyFile } from '../auth/key-file.ts'
import type { FoundKey } from '../auth/key-file.ts'
import { isWellFormed } from '../base/key-format.ts'
import { readKeys } from '../auth/key-reader.ts'
import { didYouMean } from '../config/nearest.ts'
import type { Config } from '../config/types.ts'
import { isThere } from '../base/file-exists.ts'
import { visible } from '../ledger/table.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { guarded, operator, PUBLISHING, storeCommand, storeOf } from './key-store.ts'

const HELP = `
When the command has returned, the key is refused; requests of it that run are cut off. A key that
leaked can be given itself in place of its name. What is both a name and an id is taken for the name.
The name may be used again for a new key, which goes on with the budget of the old one.

Examples:
  gateway keys revoke team-a
  gateway keys revoke --config /etc/gateway.yaml team-a
${EXIT_CODES.replace('failed while running', 'there is no such key, or a running gateway did not confirm')}`

/** `gateway keys revoke`: ends a key that was created. */
export function keysRevokeCommand(): Command {
  return storeCommand('revoke')
    .description('Refuse a key from now on.')
    .argument('<which>', 'its name, its id in the list, or the key itself')
    .addHelpText('after', HELP)
    .action(revoke)
}

function revoke(which: string, { config: from }: { config: string }, command: Command): void {
  const { config, file } = storeOf(from, command)
  const digest = isWellFormed(which) ? hash('sha256', which, 'buffer') : null
  guarded(file, command, () => {
    using store = isThere(file) ? new KeyFile(file) : null
    const found = store === null ? null : find(store, digest, which)
    const configured = config.keys.find(key => (digest ? key.digest.equals(digest) : key.name === which))
    const isLive = found !== null && found.revokedAt === null
    if (configured && !isLive) {
      fail(
        `"${configured.name}" is a key of ${from}: remove it there, or: gateway keys block --name ...`,
        command,
      )
    }
    if (store === null || found === null) return fail(unknown(which, digest !== null, config, file), command)
    store.revoke(found, Date.now(), operator())
    process.stdout.write(`${told(found)}\n`)
    warnOfTwin(found, config, from)
    if (store.published(PUBLISHING)) return
    fail(
      'a running gateway has not confirmed it, and may still let the key in; try again, or stop that gateway',
      command,
    )
  })
}

function find(store: KeyFile, digest: Buffer | null, which: string): FoundKey | null {
  if (digest !== null) return store.find('digest', digest)
  const found = store.find('name', which)
  return found === null && /^[1-9]\d{0,14}$/.test(which) ? store.find('id', Number(which)) : found
}

function told({ name, revokedAt }: FoundKey): string {
  return revokedAt === null
    ? `Revoked the key "${name}".`
    : `The key "${name}" was revoked already, on ${new Date(revokedAt).toISOString()}.`
}

function warnOfTwin({ name, digest }: FoundKey, config: Config, from: string): void {
  const twin = config.keys.find(key => key.name === name || key.digest.equals(digest))
  if (twin === undefined) return
  const what = twin.digest.equals(digest) ? `the same key, as "${twin.name}"` : 'a key of this name'
  process.stderr.write(`warning: ${from} has ${what}, and that is let in as before\n`)
}

function unknown(which: string, isKey: boolean, config: Config, file: string): string {
  // What may be a key must not be shown again.
  if (isKey) return 'no key has this value'
  const names = [...config.keys, ...readKeys(file).map(({ key }) => key)].map(({ name }) => name)
  return `no key is named "${visible(which)}"${didYouMean(which, names)}`
}

function fail(message: string, command: Command): never {
  return command.error(`error: ${message}`, { exitCode: EXIT.failed })
}
