import type { Price } from '../../config/price-types.ts'
import type { Target } from '../../config/types.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { PROTOCOLS } from '../../protocols/index.ts'
import type { Model } from '../api/routes.ts'

type ProtocolName = Model['protocols'][number]

/** The paths of the protocols that the playground supports. */
const PATHS = PROTOCOLS.flatMap(({ name, textPath }) => textPath ? [{ name: name as ProtocolName, path: textPath }] : [])

type ModelTarget = Model['targets'][number]

/** @param listed true if GET /v1/models lists the model @param now prices can depend on the date or the hour */
export function modelRow(gateway: Gateway, name: string, listed: boolean, now: Date): Model {
  const { routes } = gateway
  const served = PATHS.filter(({ path }) => routes.match(path(name), name) !== null)
  const targets = targetsOf(gateway, name, served, now)
  const [first] = targets
  // Without a route, the name is the name of a model at an upstream.
  const { price, price_source } = first ?? quote(gateway, null, name, now)
  return {
    name, listed, protocols: served.map(protocol => protocol.name), price, price_source,
    price_varies: new Set(targets.map(target => JSON.stringify(target.price))).size > 1,
    upstream: first?.upstream ?? null, targets,
  }
}

/** The model without data that key holders must not see. */
export function withoutTargets(model: Model): Model {
  return { ...model, price: null, price_source: null, price_varies: false, upstream: null, targets: [] }
}

/** The targets in the order of the protocols and of each route. A target with several protocols appears once. */
function targetsOf(gateway: Gateway, name: string, served: typeof PATHS, now: Date): ModelTarget[] {
  const found = new Map<string, ModelTarget>()
  for (const { name: protocol, path } of served) {
    const route = gateway.routes.match(path(name), name)
    if (route === null) continue
    const { targets, on: { contextLength, contentFilter } } = route
    const add = (target: Target, after: ModelTarget['after']) => {
      const id = JSON.stringify([target.upstream.name, target.model ?? name])
      const known = found.get(id)
      if (known === undefined) {
        const { upstream, model } = target
        const priced = quote(gateway, target, name, now)
        found.set(id, { upstream: upstream.name, model, protocols: [protocol], after, ...priced })
      } else if (!known.protocols.includes(protocol)) known.protocols.push(protocol)
    }
    for (const target of targets) add(target, null)
    if (contextLength !== null) add(contextLength, 'context_length')
    if (contentFilter !== null) add(contentFilter, 'content_filter')
  }
  return [...found.values()]
}

/** The price of a model at a target. The price is looked up as for the reservation and the bill. */
function quote({ accounts }: Gateway, target: Target | null, name: string, now: Date) {
  const quoted = accounts.prices.priceOf(target?.upstream.url ?? null, target?.model ?? name, now, name)
  return { price: quoted && plainPrice(quoted), price_source: quoted?.version ?? null }
}

/** The price under the names of gateway.yaml, including tiers and service tiers. */
function plainPrice({ price, serviceTiers }: QuotedPrice): Record<string, string> {
  const apart = [...serviceTiers ?? []].flatMap(([tier, { price }]) => rates(price, ` (${tier})`))
  return Object.fromEntries([...rates(price, ''), ...apart])
}

function rates({ tiers = [], ...own }: Price, suffix: string): [name: string, usd: string][] {
  const above = tiers.flatMap(({ above, price }) => rates(price, ` > ${above}${suffix}`))
  const base = Object.entries(own).map(([name, usd]): [string, string] => [snakeCase(name) + suffix, usd])
  return [...base, ...above]
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]|\d+/g, part => `_${part.toLowerCase()}`)
}
