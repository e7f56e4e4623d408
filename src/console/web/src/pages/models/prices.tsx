import type { Model } from '../../../../api/routes.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import { money } from '../../format.ts'
import classes from './models.module.css'

type Target = Model['targets'][number]

const FALLBACKS = {
  context_length: 'fallback for context length', content_filter: 'fallback for content filter',
} as const

/** The price of a model. If the prices of its targets differ, the price of each target. */
export function Prices({ model }: { readonly model: Model }) {
  const { price, price_varies, targets } = model
  if (!price_varies) return <Price price={price} />
  return (
    <div className={classes.prices}>
      {targets.length === 0 ? <Price price={price} /> : (
        <ul>
          {targets.map(target => (
            <li key={`${target.upstream} ${target.model}`}>
              <TargetName target={target} model={model} />
              <Price price={target.price} />
            </li>
          ))}
        </ul>
      )}
      <small className="dim">{targets.length === 0
        ? 'The price depends on the target that serves the request.'
        : 'Prices differ. A request is billed at the price of the target that serves it.'}</small>
    </div>
  )
}

/** The sources of the prices, without duplicates. */
export function sourcesOf({ price_source, price_varies, targets }: Model): string[] {
  const all = price_varies && targets.length > 0 ? targets.map(target => target.price_source) : [price_source]
  return [...new Set(all.filter(source => source !== null))]
}

function TargetName({ target, model }: { readonly target: Target; readonly model: Model }) {
  const isPartial = target.protocols.length < model.protocols.length
  return (
    <span className={classes.target}>
      <NameLabel kind="upstream" name={target.upstream} />
      {target.model !== null && <code>{target.model}</code>}
      {isPartial && <span className="dim">{target.protocols.join(', ')} only</span>}
      {target.after !== null && <span className="dim">{FALLBACKS[target.after]}</span>}
    </span>
  )
}

/** A price. The names of its parts are shown with spaces: `cache_write_5m` -> `cache write 5m`. */
function Price({ price }: Pick<Model, 'price'>) {
  if (price === null) return <StatusBadge tone="warn">No price</StatusBadge>
  return (
    <dl className={classes.price}>
      {Object.entries(price).map(([name, usd]) => (
        <div key={name}>
          <dt>{name.replaceAll(/[_.]/g, ' ')}</dt>
          <dd>{/^\d+(\.\d+)?$/.test(usd) ? money(usd) : usd}</dd>
        </div>
      ))}
    </dl>
  )
}
