import { Button, TextInput } from '@mantine/core'
import { IconSearch, IconTerminal2 } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import type { Model } from '../../../api/routes.ts'
import { useApiQuery } from '../ask.ts'
import { NameLabel } from '../components/badges.tsx'
import { DataTable } from '../components/data-table.tsx'
import type { Column } from '../components/data-table.tsx'
import { Page, Section } from '../components/page.tsx'
import { QueryView, Empty } from '../components/states.tsx'
import { useUser } from '../session.ts'
import classes from './models/models.module.css'
import { Prices, sourcesOf } from './models/prices.tsx'

/** Models that are shown at first. */
const STEP = 200

/** Models, what they cost and where they go. */
export default function ModelsPage() {
  const forKey = useUser().role === 'key'
  const models = useApiQuery('GET /models', {})
  const [text, setText] = useState('')
  const columns = useMemo(() => COLUMNS.filter(({ id }) => !forKey || id !== 'upstream'), [forKey])
  const wanted = text.trim().toLowerCase()
  return (
    <Page title="Models" about={forKey ? 'Models that your key may use, and what they cost.'
      : 'Models that a route serves by name or that have a price, what they cost, and where they go.'}>
      <Section title="Models and prices"
        about="USD for a million tokens, where the name does not say otherwise." flush actions={
        <TextInput size="sm" aria-label="Filter by name" placeholder="Filter by name" value={text}
          leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      }>
        <QueryView of={models} height={420}>
          {({ models: all }) => {
            const shown = all.filter(({ name }) => name.toLowerCase().includes(wanted))
            return shown.length === 0
              ? <Empty title={all.length === 0 ? 'No model is known by name' : 'No model of that name'}>
                  {all.length === 0 && !forKey
                    ? 'Name some in the routes, or give them a price under models in gateway.yaml.' : null}
                </Empty>
              : <DataTable label="Models" rows={shown} columns={columns} id={({ name }) => name}
                phone="cards" step={STEP} />
          }}
        </QueryView>
      </Section>
    </Page>
  )
}

const PROTOCOLS: Readonly<Record<Model['protocols'][number], string>> = {
  chat: 'chat', responses: 'responses', messages: 'messages', generate: 'generate',
}

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
    id: 'source', title: 'Price from', long: 'wrap',
    cell: model => sourcesOf(model).join(', ') || <span className="dim">–</span>,
  },
  {
    id: 'protocols', title: 'Protocols', long: 'wrap',
    cell: ({ protocols }) => (protocols.length === 0 ? <span className="dim">no route serves it</span>
      : protocols.map(protocol => PROTOCOLS[protocol]).join(', ')),
  },
  {
    id: 'upstream', title: 'A chat goes to', sort: ({ upstream }) => upstream ?? '',
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
  return others === 1 ? 'or 1 other' : `or ${others} others`
}
