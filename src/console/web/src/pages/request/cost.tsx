import type { RequestDetails } from '../../../../api/logs.ts'
import { count, money, quantity, sum } from '../../format.ts'
import { unknownCostReason } from './headline.ts'
import classes from './request.module.css'

interface Line {
  readonly item: string
  /** The quantity and the price of the item, as text. */
  readonly arithmetic: string
  readonly cost: string
}

/** The cost, and how it is calculated. */
export function Cost({ story }: { readonly story: RequestDetails }) {
  const { row: { cost_usd }, source_explanation, price_version } = story
  const lines = linesOf(story)
  return (
    <>
      {cost_usd === null
        ? <>
            <p>Cost unknown: {unknownCostReason(story)}.</p>
            {lines.length > 0 && <CostTable lines={lines} total={null} />}
          </>
        : lines.length === 0
          ? <p>{/^0(\.0*)?$/.test(cost_usd) ? 'Not billed.'
            : `${money(cost_usd)}. No breakdown is available.`}</p>
          : <CostTable lines={lines} total={cost_usd} />}
      <p className={classes.note}>
        Usage: {source_explanation}.
        {price_version !== null && <> Prices: {price_version}.</>}
      </p>
    </>
  )
}

function CostTable({ lines, total }: { readonly lines: readonly Line[]; readonly total: string | null }) {
  const rest = total === null ? '0' : sum(total, ...lines.map(({ cost }) => negated(cost)))
  return (
    <table className={classes.costs}>
      <caption className="unseen">Cost breakdown, USD</caption>
      <thead>
        <tr><th scope="col">Item</th><th scope="col">Quantity × price</th><th scope="col">USD</th></tr>
      </thead>
      <tbody>
        {lines.map(({ item, arithmetic, cost }) => (
          <tr key={item}><th scope="row">{item}</th><td>{arithmetic}</td><td>{money(cost)}</td></tr>
        ))}
        {/* The total is rounded only once, so the sum of the lines may differ from it by less than one unit of the last digit. */}
        {rest !== '0' && (
          <tr><th scope="row">rounding</th><td>half up, to 10⁻¹² USD</td><td>{money(rest)}</td></tr>
        )}
      </tbody>
      <tfoot>
        <tr><th scope="row" colSpan={2}>Total</th><td>{total === null ? 'unknown' : money(total)}</td></tr>
      </tfoot>
    </table>
  )
}

/** The lines of the bill. If several attempts produced the response, each attempt is billed at its own price. */
function linesOf({ attempts, bill }: RequestDetails): Line[] {
  const shares = attempts.flatMap(({ upstream, input_tokens, output_tokens, cost_usd }, n) => {
    if (cost_usd === null) return []
    const item = `attempt ${n + 1}${upstream === null ? '' : `, ${upstream}`}`
    return [{ item, arithmetic: `${count(input_tokens)} input, ${count(output_tokens)} output tokens`,
      cost: cost_usd }]
  })
  if (shares.length > 0) return shares
  return bill.map(({ item, quantity: amount, price, per, cost_usd }) => ({
    item,
    arithmetic: `${quantity(amount)} × ${money(price)}${per === 1 ? '' : ` / ${count(per)}`}`,
    cost: cost_usd,
  }))
}

function negated(usd: string): string {
  return usd.startsWith('-') ? usd.slice(1) : `-${usd}`
}
