import type { ResponseOf } from '../../api.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Money, columnPlaces } from '../../components/money.tsx'
import { count, dayUtc, money, monthName, timeUtc } from '../../format.ts'
import icon from '../../icon.svg'
import { nameOf } from './names.ts'
import classes from './statement-paper.module.css'

type Statement = ResponseOf<'GET /statement'>
type Figures = Statement['total']

/** The statement as it is printed: every line, and a total that they add up to. */
export function StatementDocument({ statement }: { readonly statement: Statement }) {
  const { key, month, from, to, final, made_at, lines, days, total } = statement
  const lastDay = dayUtc(Date.parse(to) - 1)
  const figures = columnsOf(
    [total, ...lines.map(line => line.figures), ...days.map(day => day.figures)], total,
  )
  const used = days.filter(day => day.figures.requests > 0)
  return (
    <article className={`${classes.paper} paper`}>
      <header className={classes.top}>
        <div className={classes.from}>
          <img src={icon} alt="" width={36} height={36} />
          <div>
            <strong>Statement of use</strong>
            <span>Model Gateway, {window.location.host}</span>
          </div>
        </div>
        <div className={classes.total}>
          <span>Total, USD</span>
          <strong>{money(total.cost_usd)}</strong>
        </div>
      </header>
      <dl className={classes.facts}>
        <div><dt>Key</dt><dd>{key}</dd></div>
        <div><dt>Month</dt><dd>{monthName(month)}</dd></div>
        <div><dt>From and to, UTC</dt><dd>{dayUtc(from)} – {lastDay}</dd></div>
        <div><dt>Made, UTC</dt><dd>{timeUtc(made_at)}</dd></div>
        <div>
          <dt>State</dt>
          <dd>{final ? <StatusBadge tone="good">Final</StatusBadge> : <StatusBadge tone="warn">Provisional</StatusBadge>}</dd>
        </div>
      </dl>
      <section className={classes.part}>
        <h2>By model</h2>
        <DataTable label="By model" rows={lines} id={line => line.model ?? '\0'} totalLabel="Total" columns={[
          { id: 'model', title: 'Model', long: 'clip', cell: line => nameOf('model', line.model) },
          ...figures,
        ]} />
      </section>
      <section className={classes.part}>
        <h2>By day, UTC</h2>
        <DataTable label="By day" rows={used} id={day => day.day} totalLabel="Total" columns={[
          { id: 'day', title: 'Day', long: 'clip', cell: day => day.day },
          ...figures,
        ]} />
      </section>
      <footer className={classes.notes}>
        {!final && <p>The month is not over, or a request of it still runs: the sums can still grow.</p>}
        {total.estimated_requests > 0 && (
          <p>
            The use of {count(total.estimated_requests)} requests was estimated by the gateway, in whole or in
            part: {money(total.estimated_cost_usd)} of the total.
          </p>
        )}
        {total.unpriced_requests > 0 && (
          <p>
            The cost of {count(total.unpriced_requests)} requests is not known: most often the model has no
            price. They are not in the total.
          </p>
        )}
        <p>
          Prices are those in force when a request was made. Cached input is part of the input, reasoning of
          the output.
          <span className={classes.phone}> How many tokens there were does not fit here: it is on paper, in
            the CSV and on a wider screen.</span>
        </p>
      </footer>
    </article>
  )
}

function columnsOf(all: readonly Figures[], total: Figures): Column<{ readonly figures: Figures }>[] {
  const places = columnPlaces(all.map(({ cost_usd }) => cost_usd))
  const numbers = (id: 'requests' | `${'input' | 'cached_input' | 'output'}_tokens`, title: string) => ({
    id, title, align: 'right' as const, total: count(total[id]), deskOnly: id !== 'requests',
    cell: ({ figures }: { readonly figures: Figures }) => count(figures[id]),
  })
  return [
    numbers('requests', 'Requests'),
    numbers('input_tokens', 'Input'),
    numbers('cached_input_tokens', 'Cached'),
    numbers('output_tokens', 'Output'),
    {
      id: 'cost', title: 'Cost, USD', align: 'right', total: <Money usd={total.cost_usd} places={places} />,
      cell: ({ figures }) => <Money usd={figures.cost_usd} places={places} />,
    },
  ]
}
