import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { Budget, Limits } from '../key-types.ts'
import { decimalOf } from './prices.ts'
import type { RawLimits } from '../raw.ts'
import { checkGlob } from './routes.ts'
import { buildQueue } from './values.ts'

/** Builds the limits. A limit that is absent in the file is unlimited. */
export function buildLimits(raw: RawLimits | undefined, path: Path, findings: Findings): Limits | null {
  if (raw === undefined) return null
  const models = new Map<string, Omit<Limits, 'models'>>()
  for (const [glob, limits] of Object.entries(raw.models ?? {})) {
    if (limits === undefined) continue
    const at = [...path, 'models', glob]
    checkGlob(glob, at, findings, 'key')
    models.set(glob, buildFigures(limits, at, findings))
  }
  return { ...buildFigures(raw, path, findings), ...raw.priority !== undefined && { priority: raw.priority }, models }
}

function buildFigures(raw: Omit<RawLimits, 'models' | 'priority'>, path: Path, findings: Findings): Omit<Limits, 'models' | 'priority'> {
  return {
    requestsPerMinute: raw.requests_per_minute ?? null,
    tokensPerMinute: raw.tokens_per_minute ?? null,
    concurrent: raw.concurrent ?? null,
    budget: buildBudget(raw.budget, [...path, 'budget'], findings),
    ...raw.queue !== undefined && { queue: buildQueue(raw.queue, [...path, 'queue'], findings) },
  }
}

function buildBudget(raw: RawLimits['budget'], path: Path, findings: Findings): Budget | null {
  if (raw?.usd === undefined || raw.per === undefined) return null
  return { usd: decimalOf([...path, 'usd'], findings), per: raw.per }
}
