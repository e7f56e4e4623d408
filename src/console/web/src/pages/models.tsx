import { Button, TextInput } from '@mantine/core'
import { IconSearch, IconTerminal2 } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import type { Model } from '../../../api/routes.ts'
import { useApiQuery } from '../api-hooks.ts'
import { NameLabel } from '../components/badges.tsx'
import { DataTable, type Column } from '../components/data-table.tsx'
import { Page, Section } from '../components/page/page.tsx'
import { QueryView, Empty } from '../components/page/states.tsx'
import { counted } from '../format.ts'
import { useUser } from '../session.ts'
import classes from './models/models.module.css'
import { Prices, sourcesOf } from './models/prices.tsx'

/** Number of models that are shown at first. */
const STEP = 200

/** Models with their prices and targets. */
export default function ModelsPage() {
  const forKey = useUser().role === 'key'
  const models = useApiQuery('GET /models', {})
  const [text, setText] = useState('')
  const columns = useMemo(() => COLUMNS.filter(({ id }) => !forKey || !OPERATOR_COLUMNS.has(id)), [forKey])
  const search = text.trim().toLowerCase()
  return (
    <Page title="Models" about={forKey ? 'Models that your key may use.'
      : 'Models that a route names or that have a price, with prices and targets.'}>
      <Section title={forKey ? 'Models' : 'Models and prices'}
        {...!forKey && { about: 'USD per million tokens, unless the item names another unit.' }} flush actions={
        <TextInput size="sm" aria-label="Filter by name" placeholder="Filter by name" value={text}
          leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      }>
        <QueryView of={models} height={420}>
          {({ models: all }) => {
            const shown = all.filter(({ name }) => name.toLowerCase().includes(search))
            return shown.length === 0
              ? <Empty title={all.length === 0 ? 'No models' : 'No matching models'}>
                  {all.length === 0 && !forKey
                    ? 'Name models in a route, or add prices under models in gateway.yaml.' : null}
                </Empty>
              : <DataTable label="Models" rows={shown} columns={columns} id={({ name }) => name}
                phone="cards" step={STEP} />
          }}
        </QueryView>
      </Section>
    </Page>
  )
}

/** Columns that are hidden from key holders. */
const OPERATOR_COLUMNS = new Set(['price', 'source', 'upstream'])

const COLUMNS: readonly Column<Model>[] = [
  {
    id: 'name', title: 'Model', long: 'wrap', sort: ({ name }) => name,
    cell: ({ name, listed }) => (
      <span className={classes.name}>
        <span>{name}</span>
        {!listed && <small className="dim">not in GET /v1/models</small>}
      </span>
    ),
  },
  { id: 'price', title: 'Price', long: 'wrap', cell: model => <Prices model={model} /> },
  {
    id: 'source', title: 'Price source', long: 'wrap',
    cell: model => sourcesOf(model).join(', ') || <span className="dim">–</span>,
  },
  {
    id: 'protocols', title: 'Protocols', long: 'wrap',
    cell: ({ protocols }) => (protocols.length === 0 ? <span className="dim">no route</span>
      : protocols.join(', ')),
  },
  {
    id: 'upstream', title: 'Chat target', sort: ({ upstream }) => upstream ?? '',
    cell: ({ upstream, targets }) => (upstream === null ? <span className="dim">–</span> : (
      <span className={classes.name}>
        <NameLabel kind="upstream" name={upstream} />
        {targets.length > 1 && <small className="dim">{othersText(targets.length - 1)}</small>}
      </span>
    )),
  },
  {
    id: 'try', title: '', align: 'right',
    cell: ({ name, protocols }) => (protocols.length === 0 ? null
      : <Button component={Link} href={`/playground?${new URLSearchParams({ model: name })}`} variant="subtle"
        size="compact-sm"
          leftSection={<IconTerminal2 size={15} stroke={1.6} aria-hidden />} aria-label={`Try ${name}`}>
          Try
        </Button>),
  },
]

function othersText(others: number): string {
  return `+ ${counted(others, 'more target')}`
}
