import { buildAccepts } from './accepts.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { Model, Price } from '../price-types.ts'
import type { RawConfig, RawPrice } from '../raw.ts'

type Amounts = Omit<Price, 'tiers'>

const DECIMAL = /^\+?(\d*)\.?(\d*)(?:e([+-]?\d{1,2}))?$/i

const FIELDS = {
  input: 'input', cached_input: 'cachedInput', output: 'output', reasoning: 'reasoning',
  input_audio: 'inputAudio', output_audio: 'outputAudio', input_image: 'inputImage', output_image: 'outputImage',
  per_request: 'perRequest', per_second: 'perSecond', per_character: 'perCharacter', per_image: 'perImage',
} as const satisfies Record<string, keyof Amounts>

export function buildModels(raw: RawConfig, findings: Findings): Map<string, Model> {
  const models = new Map<string, Model>()
  for (const [name, model] of Object.entries(raw.models ?? {})) {
    if (model === undefined) continue
    const path = ['models', name]
    if (name.includes('*')) findings.warn(path, 'this is the name of a model, not a pattern: * has no special meaning here', 'key')
    const at = [...path, 'price']
    const price = model.price ? buildPrice(model.price, at, findings) : null
    const accepts = model.accepts === undefined ? null : buildAccepts(model.accepts, ['models', name, 'accepts'], findings)
    const { base_model: baseModel = null, context = null, output = null } = model
    models.set(name, { name, baseModel, accepts, context, output, price, serviceTiers: buildServiceTiers(model.price, price, at, findings) })
  }
  return models
}

/** Builds complete prices for service tiers. Fields that a tier does not set have the price without a tier. */
function buildServiceTiers(raw: RawPrice | undefined, price: Price | null, path: Path, findings: Findings): Map<string, Price> {
  const serviceTiers = new Map<string, Price>()
  for (const [tier, other] of Object.entries(raw?.service_tiers ?? {})) {
    if (other === undefined) continue
    const at = [...path, 'service_tiers', tier]
    const own = buildPrice(other, at, findings)
    const isOverruled = own.tiers === undefined && price?.tiers?.some(above => Object.keys(above.price).some(field => field in own))
    if (isOverruled) {
      findings.warn(at, 'for long inputs the tiers of the model overrule these prices; give this service tier tiers of its own', 'key')
    }
    serviceTiers.set(tier, { ...price, ...own })
  }
  return serviceTiers
}

function buildPrice(raw: Omit<RawPrice, 'service_tiers'>, path: Path, findings: Findings): Price {
  const amounts = buildAmounts(raw, path, findings)
  if (raw.tiers === undefined) return amounts
  const tiers = raw.tiers.flatMap((tier, index) => {
    if (tier?.above === undefined) return []
    const at = [...path, 'tiers', index]
    const price = buildAmounts(tier, at, findings)
    if (findings.names(at).every(name => name === 'above')) findings.error(at, 'a tier needs a price in addition to above')
    return [{ above: tier.above, price, at }]
  })
  tiers.sort((a, b) => a.above - b.above)
  for (const [index, { above, at }] of tiers.entries()) {
    if (index > 0 && tiers[index - 1]!.above === above) {
      findings.error([...at, 'above'], 'another tier starts above the same number of tokens')
    }
  }
  return { ...amounts, tiers: tiers.map(({ above, price }) => ({ above, price })) }
}

function buildAmounts(raw: Omit<RawPrice, 'tiers' | 'service_tiers'>, path: Path, findings: Findings): Amounts {
  const amounts: { -readonly [field in keyof Amounts]: string } = {}
  for (const [name, field] of Object.entries(FIELDS)) {
    const amount = raw[name as keyof typeof FIELDS]
    if (amount !== undefined) amounts[field] = decimalOf([...path, name], findings)
  }
  const { cache_write: write } = raw
  const at = [...path, 'cache_write']
  if (typeof write === 'number') {
    amounts.cacheWrite5m = decimalOf(at, findings)
    amounts.cacheWrite1h = amounts.cacheWrite5m
  } else {
    if (write?.['5m'] !== undefined) amounts.cacheWrite5m = decimalOf([...at, '5m'], findings)
    if (write?.['1h'] !== undefined) amounts.cacheWrite1h = decimalOf([...at, '1h'], findings)
  }
  return amounts
}

/** The number at the path as the exact decimal in the file: `0.40` stays `0.40`, `.5` becomes `0.5`, and `2.5e-05` becomes `0.000025`. */
export function decimalOf(path: Path, findings: Findings): string {
  const text = findings.located(path)?.text ?? ''
  const [, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  const digits = whole + fraction
  if (digits === '') {
    findings.error(path, 'write an amount of money as a decimal, such as 0.000025')
    return '0'
  }
  const point = whole.length + Number(exponent)
  const padded = digits.padStart(digits.length + Math.max(0, 1 - point), '0').padEnd(point, '0')
  const cut = Math.max(1, point)
  return cut === padded.length ? padded : `${padded.slice(0, cut)}.${padded.slice(cut)}`
}
