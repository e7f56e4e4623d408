import type { ResponseOf } from '../../api.ts'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Meter } from '../../components/meter.tsx'
import { Section, Stack } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { count, duration, money } from '../../format.ts'
import classes from './limits.module.css'

type Own = ResponseOf<'GET /own'>
type Limits = NonNullable<Own['limits']>
type Rates = Omit<Limits, 'models'>

const PER = { day: 'a day', month: 'a month', total: 'in all' } as const

/** What the key may use, and what of it is left at this moment. */
export function OwnLimits({ own }: { readonly own: Own }) {
  const { limits, requests, tokens } = own
  const models = Object.entries(limits?.models ?? {})
  const isFree = requests === null && tokens === null && limits?.concurrent === undefined
  return (
    <Section title="Left now" about="Rates are counted over the last minute, and fill up again as it passes">
      {isFree && models.length === 0
        ? <Empty title="No limits on the rate">Requests of this key are not held back.</Empty>
        : <Stack>
            <dl className={classes.grid}>
              {requests && <Rate label="Requests a minute" rate={requests} />}
              {tokens && <Rate label="Tokens a minute" rate={tokens} />}
              {limits?.concurrent !== undefined && (
                <div className={classes.limit}>
                  <dt>At the same time</dt>
                  <dd className={classes.value}>
                    <strong>{count(limits.concurrent)}</strong><span>requests</span>
                  </dd>
                </div>
              )}
            </dl>
            {models.length > 0 && (
              <DataTable label="Limits for some models" rows={models} id={([glob]) => glob}
                columns={MODEL_COLUMNS} />
            )}
          </Stack>}
    </Section>
  )
}

function Rate({ label, rate }: { readonly label: string; readonly rate: NonNullable<Own['requests']> }) {
  const left = rate.limit === 0 ? 0 : rate.remaining / rate.limit
  return (
    <div className={classes.limit}>
      <dt>{label}</dt>
      <dd className={classes.value}>
        <strong>{count(rate.remaining)}</strong><span>of {count(rate.limit)} left</span>
      </dd>
      <dd><Meter share={left} tone={left < 0.1 ? 'bad' : left < 0.25 ? 'warn' : 'accent'} /></dd>
      <dd><small>{rate.reset_ms > 0 ? `full again in ${duration(rate.reset_ms)}` : 'full'}</small></dd>
    </div>
  )
}

type ModelLimit = [glob: string, rates: Rates]

const MODEL_COLUMNS: readonly Column<ModelLimit>[] = [
  { id: 'model', title: 'Models', cell: ([glob]) => <code>{glob}</code> },
  rateColumn('requests_per_minute', 'Requests a minute'),
  rateColumn('tokens_per_minute', 'Tokens a minute'),
  rateColumn('concurrent', 'At the same time'),
  {
    id: 'budget', title: 'Budget', align: 'right',
    cell: ([, { budget }]) => budget ? `${money(budget.usd)} ${PER[budget.per]}` : '–',
  },
]

function rateColumn(
  id: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent', title: string,
): Column<ModelLimit> {
  return { id, title, align: 'right', cell: ([, rates]) => count(rates[id] ?? null) }
}
