import type { KeyChange, KeyState, Limits, NewKey } from '../../../../api/keys.ts'

/** The form of a key, as text in its fields; empty = not limited. */
export interface KeyFields {
  readonly name: string
  /** Empty = every model. */
  readonly models: readonly string[]
  readonly rates: RateFields
  readonly byModel: readonly ModelRates[]
}

export interface RateFields {
  readonly requests_per_minute: string
  readonly tokens_per_minute: string
  readonly concurrent: string
  readonly usd: string
  readonly per: 'day' | 'month' | 'total'
}

export interface ModelRates {
  /** Tells one line of the form from another. */
  readonly id: number
  readonly glob: string
  readonly rates: RateFields
}

type Rates = Omit<Limits, 'models'>

/** As the gateway takes them: see `gateway keys create`. */
const MOST_COUNT = 1_000_000_000_000
const LONGEST_NAME = 128
export const COUNTS = ['requests_per_minute', 'tokens_per_minute', 'concurrent'] as const

export const NO_RATES: RateFields = { requests_per_minute: '', tokens_per_minute: '', concurrent: '', usd: '',
  per: 'month' }

/** @param key whose form it is; null for a new one */
export function fieldsOf(key: Pick<KeyState, 'name' | 'models' | 'limits'> | null): KeyFields {
  const { models: byModel, ...rates } = key?.limits ?? {}
  return {
    name: key?.name ?? '',
    models: key?.models ?? [],
    rates: rateFields(rates),
    byModel: Object.entries(byModel ?? {}).map(([glob, limits], id) =>
      ({ id, glob, rates: rateFields(limits) })),
  }
}

function rateFields({ requests_per_minute, tokens_per_minute, concurrent, budget }: Rates): RateFields {
  const text = (count: number | undefined): string => (count === undefined ? '' : String(count))
  return {
    requests_per_minute: text(requests_per_minute),
    tokens_per_minute: text(tokens_per_minute),
    concurrent: text(concurrent),
    usd: budget?.usd ?? '',
    per: budget?.per ?? 'month',
  }
}

/** @returns what the API is told; only for fields in which nothing is wrong */
export function keyOf({ name, models, rates, byModel }: KeyFields): NewKey {
  const limits: Limits = {
    ...ratesOf(rates),
    ...byModel.length > 0
      && { models: Object.fromEntries(byModel.map(line => [line.glob.trim(), ratesOf(line.rates)])) },
  }
  return {
    name: name.trim(),
    ...models.length > 0 && { models: [...models] },
    ...Object.keys(limits).length > 0 && { limits },
  }
}

/** @returns what the API is told of a change: what somebody else has changed meanwhile stays */
export function changeOf(fields: KeyFields, before: KeyFields): KeyChange {
  const [now, then] = [keyOf(fields), keyOf(before)]
  const isOther = (part: 'models' | 'limits') => JSON.stringify(now[part]) !== JSON.stringify(then[part])
  return {
    ...isOther('models') && { models: now.models ?? null },
    ...isOther('limits') && { limits: now.limits ?? null },
  }
}

function ratesOf({ usd, per, ...counts }: RateFields): Rates {
  const rates: Rates = {}
  for (const name of COUNTS) if (counts[name].trim() !== '') rates[name] = Number(digits(counts[name]))
  if (usd.trim() !== '') rates.budget = { usd: usd.trim(), per }
  return rates
}

/** People separate thousands. */
function digits(text: string): string {
  return text.trim().replaceAll(/[ ,_]/g, '')
}

/**
 * @returns what to change, by the field: `name`, `usd`, `concurrent`, and for the
 *   line of a model `7.glob`, `7.usd`
 */
export function fieldErrors({ name, rates, byModel }: KeyFields): Record<string, string> {
  const wrong: Record<string, string> = { ...wrongRates(rates, '') }
  // oxlint-disable-next-line no-control-regex -- those are the ones to refuse
  if (name.trim() === '' || name.trim().length > LONGEST_NAME || /[\x00-\x1f\x7f]/.test(name)) {
    wrong['name'] = `A name has 1 to ${LONGEST_NAME} characters.`
  } else if (/^mgw_[0-9A-Za-z]{38}$/.test(name.trim())) {
    wrong['name'] = 'That is a key. Choose a name, which everybody may see.'
  }
  const globs = new Set<string>()
  for (const line of byModel) {
    const glob = line.glob.trim()
    if (glob === '') wrong[`${line.id}.glob`] = 'Name a model or a pattern such as gpt-4*.'
    else if (globs.has(glob)) wrong[`${line.id}.glob`] = 'There is a line for it already.'
    globs.add(glob)
    Object.assign(wrong, wrongRates(line.rates, `${line.id}.`))
    if (Object.keys(ratesOf(line.rates)).length === 0) {
      wrong[`${line.id}.glob`] ??= 'Give it a limit, or remove the line.'
    }
  }
  return wrong
}

function wrongRates({ usd, ...counts }: RateFields, prefix: string): Record<string, string> {
  const wrong: Record<string, string> = {}
  for (const name of COUNTS) {
    const text = digits(counts[name])
    const count = Number(text)
    if (text !== '' && !(/^\d+$/.test(text) && count >= 1 && count <= MOST_COUNT)) {
      wrong[prefix + name] = 'A whole number from 1 on.'
    }
  }
  if (usd.trim() !== '' && !/^\d{1,10}(\.\d{1,12})?$/.test(usd.trim())) {
    wrong[`${prefix}usd`] = 'An amount of USD, such as 50 or 0.25.'
  }
  return wrong
}
