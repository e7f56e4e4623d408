import type { Command } from 'commander'
import { limitsToJson } from '../../auth/key-record.ts'
import { limitsText, modelsText } from '../../auth/key-texts.ts'
import { isoTime } from '../../base/clock.ts'
import { fileExists } from '../../base/files/file-exists.ts'
import { messageOf } from '../../base/message-of.ts'
import { table } from '../../base/text-table.ts'
import type { Key } from '../../config/key-types.ts'
import type { Config } from '../../config/types.ts'
import { clusterLastUse, lastUse } from '../../cluster/ledger/last-use.ts'
import { Database } from '../../cluster/postgres/database.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { EXIT_CODES } from '../../process/exit.ts'
import { exitOnStoreError, storeCommand, storedKeys, keyStoreOf } from '../common/key-store-command.ts'

const HELP = `
Lists the keys of gateway.yaml, then the created ones, with revoked and blocked keys, then the callers
whose tokens are refused because they are blocked (SOURCE token). KEY has the
first 8 characters of the secret, where they are known. SHA256 has the first 8 hexadecimal digits of
its SHA-256: printf %s "$KEY" | sha256sum. LAST USED is from the ledger; with cluster.postgres from that
of all gateways. --json has the notes, and the secrets that a rotation has replaced.

Examples:
  gateway keys list
  gateway keys list --json | jq -r 'select(.revoked_at == null) | .name'
${EXIT_CODES}`

/** Times are ms since 1970; null = unknown or none. */
interface ListedKey {
  /** Id in the store; null = the key is in gateway.yaml. */
  readonly id: number | null
  readonly key: Key
  /** `token` = a blocked caller; others are not listed. */
  readonly source: 'yaml' | 'store' | 'token'
  readonly createdAt: number | null
  readonly revokedAt: number | null
  /** Time at which the key was blocked; null = not blocked. A key can be in the file or in the store. */
  readonly blockedAt: number | null
  /** Start of the last request with the key, however long ago. */
  readonly lastUsedAt: number | null
}

export function keysListCommand(): Command {
  return storeCommand('list')
    .description('List all keys, of gateway.yaml and created ones.')
    .option('--json', 'JSON, one object a line')
    .addHelpText('after', HELP)
    .action(list)
}

async function list({ config: from, json }: { config: string; json?: true }, command: Command): Promise<void> {
  const { config, file } = keyStoreOf(from, command)
  const { keys: stored, blocks } = await exitOnStoreError(file, command, () => storedKeys(config, file))
  const blockedAt = ({ digest }: Key) => blocks.find(block => block.digest.equals(digest))?.blockedAt ?? null
  const used = latest(lastUses(config), await clusterLastUses(config))
  const facts = (key: Key) => ({ key, blockedAt: blockedAt(key), lastUsedAt: used.get(key.name) ?? null })
  const keys = [
    ...config.keys.map((key): ListedKey =>
      ({ id: null, source: 'yaml', createdAt: null, revokedAt: null, ...facts(key) })),
    ...stored.map(({ id, key, createdAt, revokedAt }): ListedKey =>
      ({ id, source: 'store', createdAt, revokedAt, ...facts(key) })),
    ...blocks.flatMap(({ name, digest, blockedAt }): ListedKey[] => {
      const issuer = config.callers.find(each => name.startsWith(`${each.name}:`))
      if (issuer === undefined || blockedAt === null) return []
      return [{ id: null, source: 'token', createdAt: null, revokedAt: null, ...facts({ name, digest, models: null, limits: issuer.limits }) }]
    }),
  ]
  process.stdout.write(json === true ? keys.map(jsonLine).join('') : keyTable(keys))
}

/**
 * The last use of each key, in ms since 1970, by the name of the key. Empty if the ledger cannot be read: the keys are listed without it.
 */
function lastUses({ ledger }: Config): Map<string, number> {
  if (ledger === null || !fileExists(ledger.file)) return new Map()
  try {
    return lastUse(ledger.file)
  } catch (error) {
    process.stderr.write(`warning: ${ledger.file} cannot be read, so that the last use is unknown: ${messageOf(error)}\n`)
    return new Map()
  }
}

/** The last uses at all gateways. Empty if there is no PostgreSQL, or if it is unreachable, which a warning reports. */
async function clusterLastUses({ cluster }: Config): Promise<Map<string, number>> {
  if (cluster === null || cluster.postgres === null) return new Map()
  const database = new Database({ url: cluster.postgres, name: 'gateway keys list' })
  try {
    return await clusterLastUse(database)
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error
    return new Map()
  } finally {
    database.close()
  }
}

function latest(here: ReadonlyMap<string, number>, all: ReadonlyMap<string, number>): Map<string, number> {
  const both = new Map(here)
  for (const [name, at] of all) both.set(name, Math.max(at, both.get(name) ?? 0))
  return both
}

function jsonLine({ id, key, source, createdAt, revokedAt, blockedAt, lastUsedAt }: ListedKey): string {
  const { group = null, owner = null, note = null, tags = null, expiresAt = null, prefix = null, oldSecrets = [] } = key
  return `${JSON.stringify({
    id, name: key.name, source, models: key.models, limits: key.limits && limitsToJson(key.limits), group, owner, note, caller: key.caller ?? null, tags: tags && Object.fromEntries(tags),
    created_at: isoTimeOrNull(createdAt),
    expires_at: isoTimeOrNull(expiresAt),
    last_used_at: isoTimeOrNull(lastUsedAt),
    revoked_at: isoTimeOrNull(revokedAt),
    blocked_at: isoTimeOrNull(blockedAt),
    prefix, sha256_prefix: digestPrefix(key),
    old_secrets: oldSecrets.map(({ digest, validUntil }) =>
      ({ sha256_prefix: digestPrefix({ digest }), valid_until: isoTime(validUntil) })),
  })}\n`
}

function keyTable(keys: readonly ListedKey[]): string {
  return table<ListedKey>([
    { title: 'ID', text: ({ id }) => (id === null ? '-' : String(id)), right: true },
    { title: 'NAME', text: ({ key }) => key.name },
    { title: 'KEY', text: ({ key }) => key.prefix ?? '-' },
    { title: 'SHA256', text: ({ key }) => digestPrefix(key) ?? '-' },
    { title: 'GROUP', text: ({ key }) => key.group ?? '-' },
    { title: 'OWNER', text: ({ key }) => key.owner ?? key.caller ?? '-' },
    { title: 'SOURCE', text: ({ source }) => source },
    { title: 'CREATED', text: ({ createdAt }) => minuteText(createdAt) },
    { title: 'EXPIRES', text: ({ key }) => minuteText(key.expiresAt ?? null) },
    { title: 'LAST USED', text: ({ lastUsedAt }) => minuteText(lastUsedAt) },
    { title: 'REVOKED', text: ({ revokedAt }) => minuteText(revokedAt) },
    { title: 'BLOCKED', text: ({ blockedAt }) => minuteText(blockedAt) },
    { title: 'MODELS', text: ({ key }) => modelsText(key.models) },
    { title: 'LIMITS', text: ({ key }) => limitsText(key.limits) },
  ], keys)
}

/** The beginning of the digest; null = the variable with the key is not set here. */
function digestPrefix({ digest }: Pick<Key, 'digest'>): string | null {
  return digest.length === 0 ? null : digest.toString('hex', 0, 4)
}

function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms)
}

/** Formats a time as 2026-11-21T09:30Z. */
function minuteText(ms: number | null): string {
  return ms === null ? '-' : `${isoTime(ms).slice(0, 16)}Z`
}
