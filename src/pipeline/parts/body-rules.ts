import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { compileGlob } from '../../config/glob.ts'
import type { BodyRule, Config } from '../../config/types.ts'
import { Archive } from '../../transcripts/archive.ts'

/** Opens the archive even if no rule keeps new bodies, so that old bodies expire. @returns null = there is no ledger */
export function openArchive({ ledger }: Config, clock: Clock, log: Logger): Archive | null {
  if (ledger === null) return null
  const file = join(dirname(ledger.file), 'bodies.db')
  return new Archive({ file, clock, onFailure: trouble => log.error({ file, ...trouble }, 'bodies cannot be kept') })
}

/** @returns null = the key's bodies are not kept */
export type BodyRules = (key: string) => BodyRule | null

export function bodyRules(rules: readonly BodyRule[]): BodyRules {
  const compiled = rules.map(rule => ({ rule, matches: compileGlob(rule.key) }))
  return key => compiled.find(({ matches }) => matches(key))?.rule ?? null
}
