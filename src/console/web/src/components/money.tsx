import { counted, money, decimalsOf, type KnownCost } from '../format.ts'
import classes from './money.module.css'

const FIGURE_SPACE = '\u2007'

/**
 * An amount in a column, with all digits. The decimal points of the column are aligned.
 * @param places - the largest number of decimals in the column, from `columnDecimals`
 */
export function Money({ usd, places }: { readonly usd: string; readonly places: number }) {
  return <>{money(usd)}<span aria-hidden>{FIGURE_SPACE.repeat(Math.max(0, places - decimalsOf(usd)))}</span></>
}

/** The cost of some requests in a column: the known part, and whether a part is unknown. */
export function Cost({ of: cost, places }: { readonly of: KnownCost; readonly places: number }) {
  const { cost_usd, unpriced_requests } = cost
  if (cost_usd === null) return <span className="dim">unknown</span>
  const title = `Cost unknown for ${counted(unpriced_requests, 'request')}`
  return (
    <>
      <Money usd={cost_usd} places={places} />
      {unpriced_requests > 0 && <small className={classes.unknown} title={title}>+ unknown</small>}
    </>
  )
}

/** The largest number of decimals in a column. */
export function columnDecimals(usd: readonly (string | null)[]): number {
  return usd.reduce((most: number, each) => (each === null ? most : Math.max(most, decimalsOf(each))), 2)
}
