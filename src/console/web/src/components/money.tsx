import { money, decimalsOf } from '../format.ts'

const FIGURE_SPACE = '\u2007'

/**
 * An amount in a column, with all digits and aligned decimal points.
 * @param places - the largest number of decimals in the column (columnDecimals)
 */
export function Money({ usd, places }: { readonly usd: string; readonly places: number }) {
  return <>{money(usd)}<span aria-hidden>{FIGURE_SPACE.repeat(Math.max(0, places - decimalsOf(usd)))}</span></>
}

/** The largest number of decimals in a column. */
export function columnDecimals(usd: readonly string[]): number {
  return usd.reduce((most, each) => Math.max(most, decimalsOf(each)), 2)
}
