import type { ResponseOf } from '../../api.ts'
import { Swatch } from '../../components/chart.tsx'
import { Section } from '../../components/page.tsx'
import { approximate, count, moneyShort, percent, sum } from '../../format.ts'
import classes from './certainty.module.css'

type Figures = ResponseOf<'GET /billing'>['total']

const REPORTED = 'var(--chart-1)'
const ESTIMATED = 'var(--chart-3)'
const UNPRICED = 'var(--chart-rest)'

/** How sure the sum is: what upstreams reported, what the gateway estimated, and what nobody knows. */
export function UsageSources({ total }: { readonly total: Figures }) {
  const reported = sum(total.cost_usd, `-${total.estimated_cost_usd}`)
  const whole = approximate(total.cost_usd)
  const share = whole === 0 ? 0 : approximate(total.estimated_cost_usd) / whole
  return (
    <Section title="How sure this is">
      <div className={classes.bar} aria-hidden>
        {share < 1
          && <span style={{ '--share': 1 - share, '--colour': whole === 0 ? UNPRICED : REPORTED }} />}
        {share > 0 && <span style={{ '--share': share, '--colour': ESTIMATED }} />}
      </div>
      <dl className={classes.list}>
        <div>
          <Swatch colour={REPORTED} />
          <dt>Reported</dt>
          <dd>{moneyShort(reported)} · {percent(whole === 0 ? 0 : 1 - share)}</dd>
          <dd>The upstream said how many tokens it was.</dd>
        </div>
        <div>
          <Swatch colour={ESTIMATED} />
          <dt>Estimated</dt>
          <dd>{moneyShort(total.estimated_cost_usd)} · {percent(share)}</dd>
          <dd>{requests(total.estimated_requests)} counted by the gateway, in whole or in part.</dd>
        </div>
        <div>
          <Swatch colour={UNPRICED} />
          <dt>Unpriced</dt>
          <dd>{count(total.unpriced_requests)}</dd>
          <dd>{total.unpriced_requests === 0
            ? 'The cost of every request is known.'
            : `${requests(total.unpriced_requests)} whose cost is not known: not in the sum.`}</dd>
        </div>
      </dl>
    </Section>
  )
}

function requests(number: number): string {
  return `${count(number)} ${number === 1 ? 'request' : 'requests'}`
}
