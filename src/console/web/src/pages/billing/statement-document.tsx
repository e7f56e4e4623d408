import type { ResponseOf } from '../../api.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Cost, columnDecimals } from '../../components/money.tsx'
import { costText, count, counted, dayUtc, money, monthName, timeUtc } from '../../format.ts'
import icon from '../../icon.svg'
import { nameOf } from './names.ts'
import classes from './statement-document.module.css'

type Statement = ResponseOf<'GET /statement'>
type Figures = Statement['total']

/** The statement in the form that is printed. Its lines add up exactly to the total. */
export function StatementDocument({ statement }: { readonly statement: Statement }) {
  const { key, owner, user, tag, month, from, to, final, made_at, lines, keys, days, total } = statement
  const lastDay = dayUtc(Date.parse(to) - 1)
  const [title, name] = owner !== null ? ['Owner', owner] : user !== null ? ['User', user] : tag !== null ? ['Tag', tag] : ['Key', key]
  const figures = columnsOf(
    [total, ...[...lines, ...keys, ...days].map(line => line.figures)], total,
  )
  const used = days.filter(day => day.figures.requests > 0)
  return (
    <article className={`${classes.paper} paper`}>
      <header className={classes.top}>
        <div className={classes.from}>
          <img src={icon} alt="" width={36} height={36} />
          <div>
            <strong>Usage statement</strong>
            <span>Model Gateway, {window.location.host}</span>
          </div>
        </div>
        <div className={classes.total}>
          <span>Total (USD)</span>
          <strong>{costText(total)}</strong>
        </div>
      </header>
      <dl className={classes.facts}>
        <div><dt>{title}</dt><dd>{name}</dd></div>
        <div><dt>Month</dt><dd>{monthName(month)}</dd></div>
        <div><dt>Period (UTC)</dt><dd>{dayUtc(from)} – {lastDay}</dd></div>
        <div><dt>Created (UTC)</dt><dd>{timeUtc(made_at)}</dd></div>
        <div>
          <dt>Status</dt>
          <dd>
            {final ? <StatusBadge tone="good">Final</StatusBadge>
              : <StatusBadge tone="warn">Provisional</StatusBadge>}
          </dd>
        </div>
      </dl>
      {key === null && (
        <section className={classes.part}>
          <h2>By key</h2>
          <DataTable label="By key" rows={keys} id={line => line.key ?? '\0'} totalLabel="Total" columns={[
            { id: 'key', title: 'Key', long: 'wrap', cell: line => nameOf('key', line.key) },
            ...figures,
          ]} />
        </section>
      )}
      <section className={classes.part}>
        <h2>By model</h2>
        <DataTable label="By model" rows={lines} id={line => line.model ?? '\0'} totalLabel="Total" columns={[
          { id: 'model', title: 'Model', long: 'wrap', cell: line => nameOf('model', line.model) },
          ...figures,
        ]} />
      </section>
      <section className={classes.part}>
        <h2>By day (UTC)</h2>
        <DataTable label="By day" rows={used} id={day => day.day} totalLabel="Total" columns={[
          { id: 'day', title: 'Day', long: 'clip', cell: day => day.day },
          ...figures,
        ]} />
      </section>
      <footer className={classes.notes}>
        {!final && (
          <p>Provisional: the month has not ended, or a request is still running. Totals can still rise.</p>
        )}
        {total.estimated_requests > 0 && (
          <p>
            The gateway estimated the usage of {counted(total.estimated_requests, 'request')}, fully or
            partly: {money(total.estimated_cost_usd)} of the total.
          </p>
        )}
        {total.unpriced_requests > 0 && (
          <p>
            The cost of {counted(total.unpriced_requests, 'request')} is unknown and not in the total. A model
            without a price is the usual cause.
          </p>
        )}
        <p>
          Each request is billed at the price valid at that time. Input includes cached input; output
          includes reasoning.
          <span className={classes.phone}> This screen is too narrow for the token counts. See the printed
            statement or the CSV file.</span>
        </p>
      </footer>
    </article>
  )
}

function columnsOf(all: readonly Figures[], total: Figures): Column<{ readonly figures: Figures }>[] {
  const places = columnDecimals(all.map(({ cost_usd }) => cost_usd))
  const numbers = (id: 'requests' | `${'input' | 'cached_input' | 'output'}_tokens`, title: string) => ({
    id, title, align: 'right' as const, total: count(total[id]), deskOnly: id !== 'requests',
    cell: ({ figures }: { readonly figures: Figures }) => count(figures[id]),
  })
  return [
    numbers('requests', 'Requests'),
    numbers('input_tokens', 'Input tokens'),
    numbers('cached_input_tokens', 'Cached'),
    numbers('output_tokens', 'Output tokens'),
    {
      id: 'cost', title: 'Cost (USD)', align: 'right', total: <Cost of={total} places={places} />,
      cell: ({ figures }) => <Cost of={figures} places={places} />,
    },
  ]
}
