import { formatPath, type Findings } from '../text/findings.ts'
import type { RawConfig } from '../raw.ts'
import type { BodyRule, LogConfig } from '../types.ts'
import { durationOf, sizeOf } from './values.ts'

const DEFAULT_BODY_BYTES = 64 * 1024
/** Maximum bytes of a body in a transcript, because a transcript is in memory until it is written. */
const MAX_BODY_BYTES = 16 * 1024 * 1024

export function buildLog(raw: RawConfig, findings: Findings): LogConfig {
  const rules = raw.log?.bodies ?? []
  if (rules.length > 0 && !findings.has(['ledger'])) {
    findings.error(['log', 'bodies'], 'bodies are stored in the directory of the ledger; add ledger: { file: data/gateway.db }')
  }
  const bodies = rules.flatMap((rule, index): BodyRule[] => {
    if (rule?.key === undefined || rule.keep === undefined) return []
    const keep = durationOf(rule.keep, ['log', 'bodies', index, 'keep'], findings) ?? 0
    return [{ key: rule.key, keep, limit: limitOf(rule.limit, index, findings) }]
  })
  return { level: raw.log?.level ?? 'info', bodies }
}

function limitOf(size: string | number | undefined, index: number, findings: Findings): number {
  const path = ['log', 'bodies', index, 'limit']
  const bytes = sizeOf(size, path, DEFAULT_BODY_BYTES, findings)
  if (bytes > MAX_BODY_BYTES) findings.error(path, `${formatPath(path)} can be at most 16mb`)
  return bytes
}
