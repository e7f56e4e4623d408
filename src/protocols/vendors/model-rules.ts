import type { Accepts } from '../neutral/accepts.ts'
import { VENDOR_RULES } from './vendor-rules.ts'

/** The properties of a target that vendor rules depend on. */
interface RuledTarget {
  /** The name of the base model if it is known, or else of the model. */
  readonly model: string
  readonly protocol: string
  readonly host: string
  /** The cloud provider: `azure`, `bedrock`, `vertex`; null = none. */
  readonly provider: string | null
}

interface RuledUpstream {
  /** null = the upstream is a simulator. */
  readonly url: URL | null
  readonly provider: { readonly kind: string } | null
  readonly models: ReadonlyMap<string, { readonly name: string, readonly baseModel: string | null, readonly accepts: Accepts | null }>
}

export interface AppliedRule {
  /** Where the rule is from: the subject of a vendor's rule, or the configuration key of a model's rule. */
  readonly from: string
  readonly accepts: Accepts
}

/**
 * The rules for a model at an upstream. A later rule overrides an earlier rule.
 *
 * @param protocol the protocol of the translated request
 * @param model the upstream's name of the model
 * @param alias the client's name of the model; null = none
 */
export function modelRules({ models, url, provider }: RuledUpstream, protocol: string, model: string, alias: string | null): AppliedRule[] {
  const known = models.get(model) ?? (alias === null ? undefined : models.get(alias))
  const target = { model: known?.baseModel ?? model, protocol, host: url?.hostname ?? '', provider: provider?.kind ?? null }
  const base = models.get(known?.baseModel ?? '')
  const own = [base, known].flatMap(each => (each?.accepts ? [{ from: `models.${each.name}.accepts`, accepts: each.accepts }] : []))
  return [...vendorRules(target), ...own]
}

function vendorRules({ model, protocol, host, provider }: RuledTarget): AppliedRule[] {
  const fitting = VENDOR_RULES.filter(rule => {
    const isThere = rule.hosts === undefined && rule.providers === undefined
      || rule.hosts?.test(host) || (provider !== null && rule.providers?.includes(provider))
    return isThere && (rule.protocols?.includes(protocol) ?? true) && (rule.models?.test(model) ?? true)
  })
  return fitting.map(({ about, accepts }) => ({ from: about, accepts }))
}

export function acceptedBy(rules: readonly AppliedRule[]): Accepts {
  return Object.assign({}, ...rules.map(({ accepts }) => accepts)) as Accepts
}

/** The restrictions as text for people: `temperature max 1; stop no; efforts low, medium, high`. */
export function acceptsText(accepts: Accepts): string {
  return Object.entries(accepts).map(([name, rule]) => {
    const words = name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    return `${words} ${ruleText(rule as Accepts[keyof Accepts])}`
  }).join('; ')
}

function ruleText(rule: Accepts[keyof Accepts]): string {
  if (typeof rule === 'boolean') return rule ? 'yes' : 'no'
  if (Array.isArray(rule)) return rule.join(', ') || 'none'
  if (typeof rule !== 'object') return String(rule)
  return Object.entries(rule).map(([name, value]) => `${name} ${String(value)}`).join(' ') || 'yes'
}
