import type { ResponseOf } from '../../api.ts'
import { Swatch } from '../../components/charts/chart.tsx'
import { Section } from '../../components/page/page.tsx'
import { approximate, count, counted, moneyShort, percent, sum } from '../../format.ts'
import classes from './usage-sources.module.css'

type Figures = ResponseOf<'GET /billing'>['total']

const REPORTED = 'var(--chart-1)'
const ESTIMATED = 'var(--chart-3)'
const UNPRICED = 'var(--chart-rest)'

/** Shows which parts of the spend upstreams reported, the gateway estimated, or are unpriced. */
export function UsageSources({ total }: { readonly total: Figures }) {
  const reported = sum(total.cost_usd ?? '0', `-${total.estimated_cost_usd}`)
  const whole = approximate(total.cost_usd)
  const share = whole === 0 ? 0 : approximate(total.estimated_cost_usd) / whole
  return (
    <Section title="Reported or estimated">
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
          <dd>Token counts reported by the upstream.</dd>
        </div>
        <div>
          <Swatch colour={ESTIMATED} />
          <dt>Estimated</dt>
          <dd>{moneyShort(total.estimated_cost_usd)} · {percent(share)}</dd>
          <dd>
            {counted(total.estimated_requests, 'request')} with token counts estimated by the gateway, fully
            or partly.
          </dd>
        </div>
        <div>
          <Swatch colour={UNPRICED} />
          <dt>Unpriced</dt>
          <dd>{count(total.unpriced_requests)}</dd>
          <dd>
            {total.unpriced_requests === 0
              ? 'The cost of every request is known.'
              : `${counted(total.unpriced_requests, 'request')} with unknown cost, not included in the spend.`}
          </dd>
        </div>
      </dl>
    </Section>
  )
}
