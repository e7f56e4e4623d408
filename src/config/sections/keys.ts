import { hash } from 'node:crypto'
import { MIN_SAFE_KEY_LENGTH } from '../../base/secrets/key-format.ts'
import type { Path } from '../text/document.ts'
import { formatPath, type Findings } from '../text/findings.ts'
import { isKnownGroup } from './groups.ts'
import { buildEdit } from './edits.ts'
import { checkNames } from './checks.ts'
import { hookNames } from './hooks.ts'
import { parseInstant } from '../instant.ts'
import type { Key } from '../key-types.ts'
import { buildLimits } from './limits.ts'
import type { RawConfig, RawKey } from '../raw.ts'
import { modelGlobs } from './routes.ts'
import { checkQuotes } from './values.ts'

/** Characters of a secret that are shown. */
export const PREFIX_LENGTH = 8
/** The value of the key is unknown; reported where it matters. */
const UNKNOWN_DIGEST = Buffer.alloc(0)
/** Prefix in the ledger for requests that users make in the console: `console:ops`. */
const CONSOLE_PREFIX = 'console:'
export const RESERVED_NAME_MESSAGE = `names that begin with "${CONSOLE_PREFIX}" are reserved for console users; choose another`

export function isReservedName(name: string): boolean {
  return name.startsWith(CONSOLE_PREFIX)
}

export function consoleKeyName(user: string): string {
  return CONSOLE_PREFIX + user
}

/** @param isGatewayEnvironment the environment is the gateway's own; in another one, the gateway's value may differ from the default */
export function buildKeys(raw: RawConfig, findings: Findings, isGatewayEnvironment: boolean): Key[] {
  const checkName = uniquenessCheck('name', findings)
  const checkValue = uniquenessCheck('value', findings)
  return (raw.keys ?? []).flatMap((key, index) => {
    if (key === undefined) return []
    const path = ['keys', index]
    const { name } = key
    if (name !== undefined && isReservedName(name)) findings.error([...path, 'name'], RESERVED_NAME_MESSAGE)
    if (name !== undefined) checkName(name, index, [...path, 'name'])
    const digest = digestOf(key, path, findings, isGatewayEnvironment)
    if (digest !== null && digest !== UNKNOWN_DIGEST) {
      const at = [...path, key.key === undefined ? 'sha256' : 'key']
      checkValue(digest.toString('latin1'), index, at)
    }
    const models = modelGlobs(key.models, [...path, 'models'], findings)
    const limits = buildLimits(key.limits, [...path, 'limits'], findings)
    const expiresAt = expiryOf(key, path, findings)
    if (name === undefined || digest === null) return []
    const { group, owner, note } = key
    const tags = tagsOf(key, raw, [...path, 'tags'], findings)
    if (group !== undefined) isKnownGroup(group, Object.keys(raw.groups ?? {}), [...path, 'group'], findings)
    const checks = checkNames(key.checks, raw, [...path, 'checks'], findings)
    const hooks = hookNames(key.hooks, raw, [...path, 'hooks'], findings)
    const edit = buildEdit(key.edit, [...path, 'edit'], findings)
    return [{
      name, digest, models, limits, line: findings.line(path),
      ...group !== undefined && { group },
      ...owner !== undefined && { owner },
      ...note !== undefined && { note },
      ...tags.size > 0 && { tags },
      ...expiresAt !== null && { expiresAt },
      ...checks.length > 0 && { checks },
      ...hooks.length > 0 && { hooks },
      ...edit !== null && { edit },
      ...key.key !== undefined && key.key.length >= MIN_SAFE_KEY_LENGTH && { prefix: key.key.slice(0, PREFIX_LENGTH) },
    }]
  })
}

function tagsOf({ tags = {} }: RawKey, { attribution }: RawConfig, path: Path, findings: Findings): ReadonlyMap<string, string> {
  for (const name of Object.keys(tags)) {
    const sources = Object.hasOwn(attribution?.tags ?? {}, name) ? attribution?.tags?.[name] : undefined
    if (sources?.includes('key') !== true) findings.warn([...path, name], `attribution.tags does not read "${name}" from the key; add the source key`, 'key')
  }
  return new Map(Object.entries(tags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** The first key that is a default in the file, as in `${DEMO_KEY:-...}`: it is not secret, so an example can show it. */
export function exampleKeyOf(raw: RawConfig, findings: Findings): string | null {
  const index = (raw.keys ?? []).findIndex((_, at) => findings.located(['keys', at, 'key'])?.defaulted)
  return raw.keys?.[index]?.key ?? null
}

function digestOf(raw: RawKey, path: Path, findings: Findings, isGatewayEnvironment: boolean): Buffer | null {
  const hasKey = findings.has([...path, 'key'])
  const hasDigest = findings.has([...path, 'sha256'])
  if (hasKey === hasDigest) {
    const problem = hasKey ? 'has both key and sha256; remove one' : 'needs key or sha256'
    findings.error(path, `${formatPath(path)} ${problem}`, 'key')
    return null
  }
  if (raw.sha256 !== undefined) return Buffer.from(raw.sha256, 'hex')
  const isDefault = findings.located([...path, 'key'])?.defaulted
  if (raw.key === undefined || (isDefault && !isGatewayEnvironment)) return UNKNOWN_DIGEST
  checkPlainKey(raw.key, [...path, 'key'], findings)
  return hash('sha256', raw.key, 'buffer')
}

/** ms since 1970; null = never. */
function expiryOf({ expires }: RawKey, path: Path, findings: Findings): number | null {
  if (expires === undefined) return null
  const at = [...path, 'expires']
  const ms = findings.parsed(at, () => parseInstant(expires))
  if (ms !== null && ms <= Date.now()) findings.warn(at, 'the key has expired; it is refused')
  return ms
}

function checkPlainKey(key: string, path: Path, findings: Findings): void {
  if (!/^[\x21-\x7e]+$/.test(key)) {
    findings.error(path, 'a key takes visible ASCII characters only, without spaces or line breaks')
  } else if (key.length < MIN_SAFE_KEY_LENGTH) {
    findings.warn(path, `keys of fewer than ${MIN_SAFE_KEY_LENGTH} characters can be guessed; use a long random one`)
  }
  checkQuotes(key, path, findings)
}

/** Reports a key with the same `what` as an earlier one. */
function uniquenessCheck(what: 'name' | 'value', findings: Findings) {
  const indexes = new Map<string, number>()
  return (value: string, index: number, path: Path): void => {
    const before = indexes.get(value)
    if (before === undefined) {
      indexes.set(value, index)
    } else {
      const line = findings.line(['keys', before])
      findings.error(path, `the key on line ${line} has the same ${what}; give each its own`)
    }
  }
}
