import type { KeyChange, KeyState, Limits, NewKey } from '../../../../api/keys.ts'

/** The fields of the key form, as text. An empty field means no limit. */
export interface KeyFields {
  readonly name: string
  /** Patterns of models; empty = all models. */
  readonly models: readonly string[]
  readonly rates: RateFields
  readonly byModel: readonly ModelRates[]
  /** Name of the group; empty = no group. */
  readonly group: string
  readonly owner: string
  readonly note: string
  /** The first day in UTC on which the key is refused, such as `2027-01-01`; empty = the key does not expire. */
  readonly expires: string
}

export interface RateFields {
  readonly requests_per_minute: string
  readonly tokens_per_minute: string
  readonly concurrent: string
  readonly usd: string
  readonly per: 'day' | 'month' | 'total'
}

export interface ModelRates {
  /** Identifies the line in the form. */
  readonly id: number
  readonly glob: string
  readonly rates: RateFields
}

type Rates = Omit<Limits, 'models'>

/** The same limits as on the server (src/console/key-input.ts). */
const MAX_COUNT = 1_000_000_000_000
const MAX_NAME_LENGTH = 128
export const COUNTS = ['requests_per_minute', 'tokens_per_minute', 'concurrent'] as const

export const NO_RATES: RateFields = { requests_per_minute: '', tokens_per_minute: '', concurrent: '', usd: '',
  per: 'month' }

/** @param key - the key to change; null = a new key */
export function fieldsOf(key: Pick<KeyState, 'name' | 'models' | 'limits'> & Partial<KeyState> | null): KeyFields {
  const { models: byModel, ...rates } = key?.limits ?? {}
  return {
    name: key?.name ?? '',
    models: key?.models ?? [],
    rates: rateFields(rates),
    byModel: Object.entries(byModel ?? {}).map(([glob, limits], id) =>
      ({ id, glob, rates: rateFields(limits) })),
    group: key?.group ?? '',
    owner: key?.owner ?? '',
    note: key?.note ?? '',
    expires: key?.expires_at?.slice(0, 10) ?? '',
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

/** @returns the new key for the API. The fields must have no errors */
export function keyOf({ name, models, rates, byModel, group, owner, note, expires }: KeyFields): NewKey {
  const limits: Limits = {
    ...ratesOf(rates),
    ...byModel.length > 0
      && { models: Object.fromEntries(byModel.map(line => [line.glob.trim(), ratesOf(line.rates)])) },
  }
  return {
    name: name.trim(),
    ...models.length > 0 && { models: [...models] },
    ...Object.keys(limits).length > 0 && { limits },
    ...group !== '' && { group },
    ...owner.trim() !== '' && { owner: owner.trim() },
    ...note.trim() !== '' && { note: note.trim() },
    ...expires !== '' && { expires_at: `${expires}T00:00:00.000Z` },
  }
}

const PARTS = ['models', 'limits', 'group', 'owner', 'note', 'expires_at'] as const

/** @returns only the parts that changed, so that changes that others made in the meantime stay */
export function changeOf(fields: KeyFields, before: KeyFields): KeyChange {
  const [now, then] = [keyOf(fields), keyOf(before)]
  const changed = PARTS.filter(part => JSON.stringify(now[part]) !== JSON.stringify(then[part]))
  return Object.fromEntries(changed.map(part => [part, now[part] ?? null]))
}

function ratesOf({ usd, per, ...counts }: RateFields): Rates {
  const rates: Rates = {}
  for (const name of COUNTS) if (counts[name].trim() !== '') rates[name] = Number(digits(counts[name]))
  if (usd.trim() !== '') rates.budget = { usd: usd.trim(), per }
  return rates
}

/** Removes separators of thousands. */
function digits(text: string): string {
  return text.trim().replaceAll(/[ ,_]/g, '')
}

/** @returns error texts by field: `name`, `usd`, `concurrent`. The fields of the line with the id 7 are `7.glob`, `7.usd` */
export function fieldErrors({ name, rates, byModel }: KeyFields): Record<string, string> {
  const errors: Record<string, string> = { ...rateErrors(rates, '') }
  // oxlint-disable-next-line no-control-regex -- control characters are refused
  if (name.trim() === '' || name.trim().length > MAX_NAME_LENGTH || /[\x00-\x1f\x7f]/.test(name)) {
    errors['name'] = `Enter a name of 1 to ${MAX_NAME_LENGTH} characters.`
  } else if (/^mgw_[0-9A-Za-z]{38}$/.test(name.trim())) {
    errors['name'] = 'This is an API key. Enter a name instead: names are not secret.'
  }
  const globs = new Set<string>()
  for (const line of byModel) {
    const glob = line.glob.trim()
    if (glob === '') errors[`${line.id}.glob`] = 'Enter a model or a pattern such as gpt-4*.'
    else if (globs.has(glob)) errors[`${line.id}.glob`] = 'This pattern already has limits.'
    globs.add(glob)
    Object.assign(errors, rateErrors(line.rates, `${line.id}.`))
    if (Object.keys(ratesOf(line.rates)).length === 0) {
      errors[`${line.id}.glob`] ??= 'Set a limit, or remove this pattern.'
    }
  }
  return errors
}

function rateErrors({ usd, ...counts }: RateFields, prefix: string): Record<string, string> {
  const errors: Record<string, string> = {}
  for (const name of COUNTS) {
    const text = digits(counts[name])
    const count = Number(text)
    if (text !== '' && !(/^\d+$/.test(text) && count >= 1 && count <= MAX_COUNT)) {
      errors[prefix + name] = 'Enter a whole number, 1 or more.'
    }
  }
  if (usd.trim() !== '' && !/^\d{1,10}(\.\d{1,12})?$/.test(usd.trim())) {
    errors[`${prefix}usd`] = 'Enter an amount in USD, such as 50 or 0.25.'
  }
  return errors
}
