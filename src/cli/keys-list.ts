import type { Command } from 'commander'
import { readBlocks, readKeys } from '../auth/key-reader.ts'
import { limitsToJson } from '../auth/key-record.ts'
import { limitsText, modelsText } from '../auth/key-texts.ts'
import { table } from '../base/text-table.ts'
import type { Key } from '../config/types.ts'
import { EXIT_CODES } from './exit.ts'
import { exitOnStoreError, storeCommand, keyStoreOf } from './key-store.ts'

const HELP = `
Lists the keys of gateway.yaml, then the created ones, with revoked and blocked keys. Of a key, only
the first 8 hexadecimal digits of its SHA-256 are shown: printf %s "$KEY" | sha256sum

Examples:
  gateway keys list
  gateway keys list --json | jq -r 'select(.revoked_at == null) | .name'
${EXIT_CODES}`

/** A key wherever it comes from. Times are ms since 1970; null where there is none to tell. */
interface ListedKey {
  /** null for a key of gateway.yaml. */
  readonly id: number | null
  readonly key: Key
  readonly source: 'yaml' | 'store'
  readonly createdAt: number | null
  readonly revokedAt: number | null
  /** Shut out, wherever it comes from, until it is let in again. */
  readonly blockedAt: number | null
}

/** `gateway keys list`: who may use the gateway, and for what. */
export function keysListCommand(): Command {
  return storeCommand('list')
    .description('List all keys, of gateway.yaml and created ones.')
    .option('--json', 'JSON, one object a line')
    .addHelpText('after', HELP)
    .action(list)
}

function list({ config: from, json }: { config: string; json?: true }, command: Command): void {
  const { config, file } = keyStoreOf(from, command)
  const { stored, blocks } = exitOnStoreError(file, command, () => ({
    stored: readKeys(file), blocks: readBlocks(file),
  }))
  const blockedAt = ({ digest }: Key) => blocks.find(block => block.digest.equals(digest))?.blockedAt ?? null
  const keys = [
    ...config.keys.map((key): ListedKey =>
      ({ id: null, key, source: 'yaml', createdAt: null, revokedAt: null, blockedAt: blockedAt(key) })),
    ...stored.map(({ id, key, createdAt, revokedAt }): ListedKey =>
      ({ id, key, source: 'store', createdAt, revokedAt, blockedAt: blockedAt(key) })),
  ]
  process.stdout.write(json === true ? keys.map(jsonLine).join('') : keyTable(keys))
}

function jsonLine({ id, key, source, createdAt, revokedAt, blockedAt }: ListedKey): string {
  return `${JSON.stringify({
    id,
    name: key.name,
    source,
    models: key.models,
    limits: key.limits && limitsToJson(key.limits),
    created_at: createdAt === null ? null : isoTime(createdAt),
    revoked_at: revokedAt === null ? null : isoTime(revokedAt),
    blocked_at: blockedAt === null ? null : isoTime(blockedAt),
    sha256_prefix: prefixOf(key),
  })}\n`
}

function keyTable(keys: readonly ListedKey[]): string {
  return table<ListedKey>([
    { title: 'ID', text: ({ id }) => (id === null ? '-' : String(id)), right: true },
    { title: 'NAME', text: ({ key }) => key.name },
    { title: 'SHA256', text: ({ key }) => prefixOf(key) ?? '-' },
    { title: 'SOURCE', text: ({ source }) => source },
    { title: 'CREATED', text: ({ createdAt }) => minuteText(createdAt) },
    { title: 'REVOKED', text: ({ revokedAt }) => minuteText(revokedAt) },
    { title: 'BLOCKED', text: ({ blockedAt }) => minuteText(blockedAt) },
    { title: 'MODELS', text: ({ key }) => modelsText(key.models) },
    { title: 'LIMITS', text: ({ key }) => limitsText(key.limits) },
  ], keys)
}

/** Enough to tell two keys apart; null where the variable that holds the key is not set here. */
function prefixOf({ digest }: Key): string | null {
  return digest.length === 0 ? null : digest.toString('hex', 0, 4)
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** 2026-11-21T09:30Z */
function minuteText(ms: number | null): string {
  return ms === null ? '-' : `${isoTime(ms).slice(0, 16)}Z`
}
