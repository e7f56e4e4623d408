import type { ResponseOf } from '../../api.ts'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Section, Stack } from '../../components/page/page.tsx'
import { ConcurrencyLimit, LimitGrid, RateLimit } from '../../components/rate-limit.tsx'
import { Empty } from '../../components/page/states.tsx'
import { PER_PERIOD, count, money } from '../../format.ts'

type Own = ResponseOf<'GET /own'>
type Limits = NonNullable<Own['limits']>
type Rates = Omit<Limits, 'models'>

/** The limits of the key, and how much of them remains. */
export function RemainingLimits({ own }: { readonly own: Own }) {
  const { limits, requests, tokens } = own
  const models = Object.entries(limits?.models ?? {})
  const isUnlimited = requests === null && tokens === null && limits?.concurrent === undefined
  return (
    <Section title="Remaining limits" about="Rate limits count the last minute and refill continuously">
      {isUnlimited && models.length === 0
        ? <Empty title="No limits">This key has no limit on requests, tokens or concurrency.</Empty>
        : <Stack>
            <LimitGrid>
              {requests && <RateLimit label="Requests per minute" rate={requests} />}
              {tokens && <RateLimit label="Tokens per minute" rate={tokens} />}
              {limits?.concurrent !== undefined && <ConcurrencyLimit limit={limits.concurrent} />}
            </LimitGrid>
            {models.length > 0 && (
              <DataTable label="Limits by model" rows={models} id={([glob]) => glob}
                columns={MODEL_COLUMNS} />
            )}
          </Stack>}
    </Section>
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
