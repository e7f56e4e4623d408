import { useMemo, useState } from 'react'
import { TextInput } from '@mantine/core'
import type { ResponseOf } from '../../api.ts'
import { Copy } from '../../components/copy.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { money } from '../../format.ts'
import classes from './models.module.css'

type Model = ResponseOf<'GET /models'>['models'][number]

/** Number of models that are shown at first. */
const STEP = 200

export interface AllowedModelsProps {
  readonly models: readonly Model[]
  /** Patterns of the models that the key may use; null = all models. */
  readonly allowed: readonly string[] | null
}

/** The models that the key may use. */
export function AllowedModels({ models, allowed }: AllowedModelsProps) {
  const [search, setSearch] = useState('')
  const shown = useMemo(() => {
    const text = search.trim().toLowerCase()
    return models.filter(({ name }) => name.toLowerCase().includes(text))
  }, [models, search])
  const about = allowed === null
    ? 'This key may use all models'
    : `This key may use ${allowed.join(', ') || 'no model'}`
  return (
    <Section title="Models" about={about} flush
      actions={
        <TextInput size="xs" w={180} type="search" aria-label="Filter by name" placeholder="Filter by name"
          value={search}
          onChange={event => { setSearch(event.currentTarget.value) }} />
      }>
      {shown.length === 0
        ? <Empty title={models.length === 0 ? 'No models' : 'No matching models'} />
        : <DataTable label="Models" rows={shown} step={STEP} id={({ name }) => name} columns={[
            {
              id: 'name', title: 'Model', sort: ({ name }) => name,
              cell: ({ name }) =>
                <span className={classes.name}><span>{name}</span><Copy value={name} what="name" /></span>,
            },
            { id: 'protocols', title: 'Protocols', cell: ({ protocols }) => protocols.join(', ') },
            {
              id: 'input', title: 'Input, per million tokens', align: 'right',
              cell: model => priceOf(model, 'input'),
            },
            {
              id: 'output', title: 'Output, per million tokens', align: 'right',
              cell: model => priceOf(model, 'output'),
            },
          ]} />}
    </Section>
  )
}

function priceOf({ price }: Model, item: string) {
  const usd = price?.[item]
  return usd === undefined ? <span className="dim">–</span> : money(usd)
}
