import type { Command } from 'commander'
import { openExistingKeys } from '../../cluster/keys/open-keys.ts'
import type { KeyEdit } from '../../auth/key-record.ts'
import { descriptionText, limitsText, modelsText } from '../../auth/key-texts.ts'
import { escapeControlCharacters } from '../../base/text-table.ts'
import type { Limits } from '../../config/key-types.ts'
import { didYouMean } from '../../config/nearest.ts'
import { EXIT, EXIT_CODES } from '../../process/exit.ts'
import { parseExpiry, parseLimit, parseModels, parseNote, parseOwner } from './key-options.ts'
import { exitOnStoreError, fail, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from '../common/key-store-command.ts'

const HELP = `
For keys that were made with 'gateway keys create'; those of gateway.yaml are changed there. What is
given replaces what the key has: --limit replaces all of its limits. What is not given stays, and so
does what the key has used. When the command returns, every running gateway has applied the change.

Examples:
  gateway keys change team-a --limit requests_per_minute=120 --limit budget=80/month
  gateway keys change team-a --no-limits --models "gpt-*,fast"
  gateway keys change trial --expires 30d
${EXIT_CODES.replace('failed while running', 'there is no such key, or a running gateway did not confirm')}`

interface Options {
  readonly config: string
  readonly models?: readonly string[]
  readonly allModels?: true
  readonly limit?: Limits
  /** false = the option --no-limits was given. */
  readonly limits: boolean
  readonly owner?: string
  readonly note?: string
  /** Time of expiry, in ms since 1970. */
  readonly expires?: number
}

export function keysChangeCommand(): Command {
  return storeCommand('change')
    .description('Change the limits, models, owner, note or expiry of a key.')
    .argument('<name>', 'the name of the key')
    .option('-l, --limit <limit>', 'a limit, as NAME=VALUE; can be repeated', parseLimit)
    .option('--no-limits', 'remove the limits of the key')
    .option('-m, --models <globs>', 'the models that it can use, separated by commas', parseModels)
    .option('--all-models', 'allow all models')
    .option('-o, --owner <owner>', 'who is responsible for the key: a team or a person', parseOwner)
    .option('--note <text>', 'what the key is for', parseNote)
    .option('-e, --expires <when>', 'when the key stops working: a duration such as 30d, or a date', text => parseExpiry(text, Date.now()))
    .addHelpText('after', HELP)
    .action(change)
}

async function change(name: string, options: Options, command: Command): Promise<void> {
  const edit = editOf(options, command)
  const { config, file } = keyStoreOf(options.config, command)
  await exitOnStoreError(file, command, async () => {
    using store = openExistingKeys(file, config.cluster)
    const found = await store?.find('name', name) ?? null
    if (store === null || found === null || found.revokedAt !== null) {
      const names = (await store?.list())?.keys.filter(({ revokedAt }) => revokedAt === null).map(({ key }) => key.name) ?? []
      const isConfigured = config.keys.some(key => key.name === name)
      return fail(isConfigured
        ? `"${name}" is a key of ${options.config}: change it there`
        : `no key is named "${escapeControlCharacters(name)}"${didYouMean(name, names)}`, command)
    }
    const isOfCaller = edit.limits !== undefined && (await store.list()).keys.some(({ id, key }) => id === found.id && key.caller !== undefined)
    if (isOfCaller) return fail(`a caller has made "${name}", so it has the limits of the caller: change those under callers`, command)
    await store.change(found, edit, editText(edit), Date.now(), operator())
    process.stdout.write(`Changed the key "${name}" (${editText(edit)}).\n`)
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    fail('a running gateway has not confirmed it; try again, or stop that gateway', command)
  })
}

function editOf({ limit, limits, models, allModels, owner, note, expires }: Options, command: Command): KeyEdit {
  if (limit !== undefined && !limits) command.error('error: --limit and --no-limits exclude each other', { exitCode: EXIT.usage })
  if (models !== undefined && allModels) command.error('error: --models and --all-models exclude each other', { exitCode: EXIT.usage })
  const edit: KeyEdit = {
    ...limit !== undefined && { limits: limit },
    ...!limits && { limits: null },
    ...models !== undefined && { models },
    ...allModels && { models: null },
    ...owner !== undefined && { owner },
    ...note !== undefined && { note },
    ...expires !== undefined && { expiresAt: expires },
  }
  if (Object.keys(edit).length === 0) command.error('error: there is nothing to change; see gateway keys change --help', { exitCode: EXIT.usage })
  return edit
}

/** Describes the change, for the output and for the list of audit events. */
function editText({ limits, models, owner, note, expiresAt }: KeyEdit): string {
  const rest = descriptionText({ ...owner && { owner }, ...note && { note }, ...expiresAt && { expiresAt } })
  return [
    ...limits === undefined ? [] : [`limits: ${limitsText(limits)}`],
    ...models === undefined ? [] : [`models: ${modelsText(models)}`],
    ...rest === null ? [] : [rest],
  ].join('; ')
}
