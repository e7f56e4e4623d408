import { hash, randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { issuerOf } from '../../auth/callers/caller-keys.ts'
import { openKeys } from '../../cluster/keys/open-keys.ts'
import { limitsText, modelsText } from '../../auth/key-texts.ts'
import { generateKey } from '../../base/secrets/key-format.ts'
import { escapeControlCharacters } from '../../base/text-table.ts'
import { compileOverlaps } from '../../config/glob.ts'
import { PREFIX_LENGTH } from '../../config/sections/keys.ts'
import { didYouMean } from '../../config/nearest.ts'
import type { Limits } from '../../config/key-types.ts'
import type { Config } from '../../config/types.ts'
import { EXIT, EXIT_CODES } from '../../process/exit.ts'
import { parseExpiry, parseLimit, parseModels, parseName, parseNote, parseOwner, parseTag } from './key-options.ts'
import { exitOnStoreError, operator, PUBLISH_TIMEOUT, storeCommand, keyStoreOf } from '../common/key-store-command.ts'
import { printSecret, requireReader } from './secret-output.ts'

const HELP = `
Prints the key on standard output, once; it cannot be shown again. Messages go to standard error.
The key works when the command returns. A key that cannot be printed is revoked.

Limits, each at most once:
  requests_per_minute=60       requests in a minute
  tokens_per_minute=100000     input and output tokens in a minute
  concurrent=10                requests at the same time
  budget=50/month              USD per day, month (UTC) or total
  gpt-4*:budget=5/day          any of these, for the models that a glob matches

Examples:
  gateway keys create --name team-a
  gateway keys create --name ci --models demo --limit concurrent=2 --limit budget=0.50/day
  gateway keys create --name trial --owner research --note "trial of batch jobs" --expires 30d
  KEY=$(gateway keys create --config /etc/gateway.yaml --name batch --models "gpt-*,fast")
${EXIT_CODES}`

interface Options {
  readonly config: string
  readonly name: string
  readonly models?: readonly string[]
  readonly limit?: Limits
  readonly group?: string
  readonly owner?: string
  readonly note?: string
  readonly tag?: ReadonlyMap<string, string>
  /** Time of expiry, in ms since 1970. */
  readonly expires?: number
}

export function keysCreateCommand(): Command {
  return storeCommand('create')
    .description('Create a key and print it once.')
    .requiredOption('-n, --name <name>', 'the name in the log and the ledger', parseName)
    .option('-m, --models <globs>', 'the models that it can use, separated by commas (default: all)', parseModels)
    .option('-l, --limit <limit>', 'a limit, as NAME=VALUE; can be repeated', parseLimit)
    .option('--group <group>', 'the group of gateway.yaml whose limits hold too')
    .option('-o, --owner <owner>', 'who is responsible for the key: a team or a person', parseOwner)
    .option('--note <text>', 'what the key is for', parseNote)
    .option('--tag <tag>', 'a tag of its requests, as NAME=VALUE; can be repeated', parseTag)
    .option('-e, --expires <when>', 'when the key stops working: a duration such as 30d, or a date', text => parseExpiry(text, Date.now()))
    .addHelpText('after', HELP)
    .action(create)
}

async function create(options: Options, command: Command): Promise<void> {
  const { name, models = null, limit: limits = null, group, owner, note, tag: tags, expires: expiresAt } = options
  requireReader(command)
  const { config, file } = keyStoreOf(options.config, command)
  const issuer = issuerOf(name, config.callers)
  if (issuer !== null) {
    command.error(`error: names that begin with "${issuer.name}:" belong to callers; choose another name`, { exitCode: EXIT.usage })
  }
  if (config.keys.some(key => key.name === name)) {
    command.error(`error: ${options.config} has a key named "${name}"; choose another name`, { exitCode: EXIT.failed })
  }
  if (group !== undefined && !config.groups.has(group)) {
    command.error(
      `error: ${options.config} has no group named "${escapeControlCharacters(group)}"${didYouMean(group, config.groups.keys())}`,
      { exitCode: EXIT.usage },
    )
  }
  for (const name of tags?.keys() ?? []) {
    const isReadFromKey = config.attribution?.tags.get(name)?.some(({ from }) => from === 'key') === true
    if (!isReadFromKey) process.stderr.write(`warning: attribution.tags of ${options.config} does not read "${name}" from the key\n`)
  }
  for (const warning of unservedModelWarnings(config, models ?? [])) process.stderr.write(`warning: ${warning}\n`)
  await exitOnStoreError(file, command, async () => {
    using store = openKeys(file, config.cluster)
    const key = generateKey(randomBytes)
    const digest = hash('sha256', key, 'buffer')
    await store.create({
      name, digest, models, limits, prefix: key.slice(0, PREFIX_LENGTH),
      ...group !== undefined && { group }, ...owner !== undefined && { owner }, ...note !== undefined && { note }, ...tags !== undefined && { tags }, ...expiresAt !== undefined && { expiresAt },
    }, Date.now(), operator())
    const expiry = expiresAt === undefined ? '' : `; expires: ${new Date(expiresAt).toISOString()}`
    process.stderr.write(`Created the key "${name}" (models: ${modelsText(models)}; limits: ` +
      `${limitsText(limits)}${expiry}).\n` +
      'It is shown only once:\n')
    await printSecret(key, async why => {
      const found = await store.find('digest', digest)
      if (found !== null) await store.revoke(found, Date.now(), operator())
      command.error(`error: the key could not be printed, so it was revoked: ${why}`, { exitCode: EXIT.failed })
    })
    if (await store.waitUntilPublished(PUBLISH_TIMEOUT)) return
    process.stderr.write('warning: a running gateway has not loaded it yet and may refuse it for a while\n')
  })
}

function unservedModelWarnings({ routes }: Config, models: readonly string[]): string[] {
  if (routes.some(route => route.models === null)) return []
  const served = routes.flatMap(route => route.models ?? [])
  const isServed = compileOverlaps(served)
  return models
    .filter(glob => !isServed(glob))
    .map(glob => `no route serves a model named "${glob}"${didYouMean(glob, served)}`)
}
