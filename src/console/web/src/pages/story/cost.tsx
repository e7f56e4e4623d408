import type { RequestDetails } from '../../../../api/logs.ts'
import { count, money, sum } from '../../format.ts'
import { unknownCostReason } from './headline.ts'
import classes from './story.module.css'

interface Line {
  readonly item: string
  /** What is multiplied with what; empty for a share that an attempt reports. */
  readonly arithmetic: string
  readonly cost: string
}

/** How the cost comes about, line by line up to its total. */
export function Cost({ story }: { readonly story: RequestDetails }) {
  const { row: { cost_usd }, source_explanation, price_version } = story
  const lines = linesOf(story)
  return (
    <>
      {cost_usd === null
        ? <>
            <p>Not known: {unknownCostReason(story)}.</p>
            {lines.length > 0 && <Bill lines={lines} total={null} />}
          </>
        : lines.length === 0
          ? <p>{/^0(\.0*)?$/.test(cost_usd) ? 'Nothing is billed.'
            : `${money(cost_usd)}; its parts are not known any more.`}</p>
          : <Bill lines={lines} total={cost_usd} />}
      <p className={classes.sure}>
        Counted: {source_explanation}.
        {price_version !== null && <> Prices: {price_version}.</>}
      </p>
    </>
  )
}

function Bill({ lines, total }: { readonly lines: readonly Line[]; readonly total: string | null }) {
  const rest = total === null ? '0' : sum(total, ...lines.map(({ cost }) => negated(cost)))
  return (
    <table className={classes.bill}>
      <caption className="unseen">The arithmetic of the cost, USD</caption>
      <thead>
        <tr><th scope="col">Item</th><th scope="col">Quantity × price</th><th scope="col">USD</th></tr>
      </thead>
      <tbody>
        {lines.map(({ item, arithmetic, cost }) => (
          <tr key={item}><th scope="row">{item}</th><td>{arithmetic}</td><td>{money(cost)}</td></tr>
        ))}
        {/* Less than the last digit: the sum is rounded once. */}
        {rest !== '0' && (
          <tr><th scope="row">rounding</th><td>once, half up, to 10⁻¹² USD</td><td>{money(rest)}</td></tr>
        )}
      </tbody>
      <tfoot>
        <tr><th scope="row" colSpan={2}>Total</th><td>{total === null ? 'unknown' : money(total)}</td></tr>
      </tfoot>
    </table>
  )
}

/** An answer that several upstreams made up is billed by each at its own price. */
function linesOf({ attempts, bill }: RequestDetails): Line[] {
  const shares = attempts.flatMap(({ upstream, input_tokens, output_tokens, cost_usd }, n) => {
    if (cost_usd === null) return []
    const item = `attempt ${n + 1}${upstream === null ? '' : `, ${upstream}`}`
    return [{ item, arithmetic: `${count(input_tokens)} tokens in, ${count(output_tokens)} out`,
      cost: cost_usd }]
  })
  if (shares.length > 0) return shares
  return bill.map(({ item, quantity, price, per, cost_usd }) => ({
    item,
    arithmetic: `${amount(quantity)} × $${price}${per === 1 ? '' : ` / ${count(per)}`}`,
    cost: cost_usd,
  }))
}

function amount(quantity: number): string {
  return quantity.toLocaleString('en-US', { maximumFractionDigits: 3 })
}

function negated(usd: string): string {
  return usd.startsWith('-') ? usd.slice(1) : `-${usd}`
}
