import type { ResponseOf } from '../../api.ts'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Meter } from '../../components/meter.tsx'
import { Section, Stack } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { PER_PERIOD, count, duration, money } from '../../format.ts'
import classes from './limits.module.css'

type Own = ResponseOf<'GET /own'>
type Limits = NonNullable<Own['limits']>
type Rates = Omit<Limits, 'models'>

/** The limits of the key, and what remains of them. */
export function RemainingLimits({ own }: { readonly own: Own }) {
  const { limits, requests, tokens } = own
  const models = Object.entries(limits?.models ?? {})
  const isUnlimited = requests === null && tokens === null && limits?.concurrent === undefined
  return (
    <Section title="Remaining limits" about="Rate limits count the last minute and refill continuously">
      {isUnlimited && models.length === 0
        ? <Empty title="No limits">This key has no limit on requests, tokens or concurrency.</Empty>
        : <Stack>
            <dl className={classes.grid}>
              {requests && <Rate label="Requests per minute" rate={requests} />}
              {tokens && <Rate label="Tokens per minute" rate={tokens} />}
              {limits?.concurrent !== undefined && (
                <div className={classes.limit}>
                  <dt>Concurrent requests</dt>
                  <dd className={classes.value}>
                    <strong>{count(limits.concurrent)}</strong><span>at most</span>
                  </dd>
                </div>
              )}
            </dl>
            {models.length > 0 && (
              <DataTable label="Limits by model" rows={models} id={([glob]) => glob}
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
      <dd><small>{rate.reset_ms > 0 ? `fully refilled in ${duration(rate.reset_ms)}` : 'none used'}</small></dd>
    </div>
  )
}

type ModelLimit = [glob: string, rates: Rates]

const MODEL_COLUMNS: readonly Column<ModelLimit>[] = [
  { id: 'model', title: 'Models', cell: ([glob]) => <code>{glob}</code> },
  rateColumn('requests_per_minute', 'Requests per minute'),
  rateColumn('tokens_per_minute', 'Tokens per minute'),
  rateColumn('concurrent', 'Concurrent requests'),
  {
    id: 'budget', title: 'Budget', align: 'right',
    cell: ([, { budget }]) => budget ? `${money(budget.usd)} ${PER_PERIOD[budget.per]}` : '–',
  },
]

function rateColumn(
  id: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent', title: string,
): Column<ModelLimit> {
  return { id, title, align: 'right', cell: ([, rates]) => count(rates[id] ?? null) }
}
