import { money, placesOf } from '../format.ts'

const FIGURE_SPACE = '\u2007'

/**
 * Money in a column: with all its digits, the points below each other.
 * @param places - the most decimals that any row of the column has (columnPlaces)
 */
export function Money({ usd, places }: { readonly usd: string; readonly places: number }) {
  return <>{money(usd)}<span aria-hidden>{FIGURE_SPACE.repeat(Math.max(0, places - placesOf(usd)))}</span></>
}

/** How many decimals the longest has. */
export function columnPlaces(usd: readonly string[]): number {
  return usd.reduce((most, each) => Math.max(most, placesOf(each)), 2)
}
