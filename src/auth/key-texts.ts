import { formatNumber } from '../base/text-table.ts'
import type { Key, Limits } from '../config/key-types.ts'

/** `gpt-*, fast`; `all` without a list, `none` for an empty one. */
export function modelsText(models: readonly string[] | null): string {
  if (models === null) return 'all'
  return models.length === 0 ? 'none' : models.join(', ')
}

/** `60 requests/min, 50 USD a month; gpt-4*: 10 requests/min`, or `none`. */
export function limitsText(limits: Limits | null): string {
  if (limits === null) return 'none'
  const parts = [figureTexts(limits).join(', ')]
  for (const [glob, figures] of limits.models) parts.push(`${glob}: ${figureTexts(figures).join(', ')}`)
  return parts.filter(part => part !== '').join('; ') || 'none'
}

function figureTexts({ requestsPerMinute, tokensPerMinute, concurrent, budget }: Omit<Limits, 'models'>): string[] {
  const texts: string[] = []
  if (requestsPerMinute !== null) texts.push(`${formatNumber(requestsPerMinute)} requests/min`)
  if (tokensPerMinute !== null) texts.push(`${formatNumber(tokensPerMinute)} tokens/min`)
  if (concurrent !== null) texts.push(`${formatNumber(concurrent)} at a time`)
  if (budget !== null) texts.push(`${budget.usd} USD ${budget.per === 'total' ? 'in total' : `a ${budget.per}`}`)
  return texts
}

/** `owner: research; note: batch jobs; expires: 2027-01-01T00:00:00.000Z`; null = no description. */
export function descriptionText({ group, owner, note, tags, expiresAt }: Partial<Key>): string | null {
  const parts = [
    ...group === undefined ? [] : [`group: ${group}`],
    ...owner === undefined ? [] : [`owner: ${owner}`],
    ...note === undefined ? [] : [`note: ${note}`],
    ...tags === undefined ? [] : [`tags: ${[...tags].map(([name, value]) => `${name}=${value}`).join(', ')}`],
    ...expiresAt === undefined ? [] : [`expires: ${new Date(expiresAt).toISOString()}`],
  ]
  return parts.length === 0 ? null : parts.join('; ')
}

/** How long a rotation keeps the replaced secret valid. @param now ms since 1970 */
export function rotationText({ oldValidUntil }: { readonly oldValidUntil: number }, now: number): string {
  return oldValidUntil > now ? `old secret valid until ${new Date(oldValidUntil).toISOString()}` : 'old secret refused'
}
