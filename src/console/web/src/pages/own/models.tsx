import { useMemo, useState } from 'react'
import { TextInput } from '@mantine/core'
import type { ResponseOf } from '../../api.ts'
import { Copy } from '../../components/copy.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { money } from '../../format.ts'
import classes from './models.module.css'

type Model = ResponseOf<'GET /models'>['models'][number]

/** Models that are shown at first. */
const STEP = 200

export interface OwnModelsProps {
  readonly models: readonly Model[]
  /** The globs that the key is narrowed to; null: to none. */
  readonly allowed: readonly string[] | null
}

/** The models that the key may ask for. */
export function OwnModels({ models, allowed }: OwnModelsProps) {
  const [wanted, setWanted] = useState('')
  const shown = useMemo(() => {
    const text = wanted.trim().toLowerCase()
    return models.filter(({ name }) => name.toLowerCase().includes(text))
  }, [models, wanted])
  const about = allowed === null
    ? 'This key may ask for every model'
    : `This key may ask for ${allowed.join(', ')}`
  return (
    <Section title="Models" about={about} flush
      actions={
        <TextInput size="xs" w={180} type="search" aria-label="Find a model" placeholder="Find a model"
          value={wanted}
          onChange={event => { setWanted(event.currentTarget.value) }} />
      }>
      {shown.length === 0
        ? <Empty title={models.length === 0 ? 'No models' : 'No model of that name'} />
        : <DataTable label="Models" rows={shown} step={STEP} id={({ name }) => name} columns={[
            {
              id: 'name', title: 'Model', sort: ({ name }) => name,
              cell: ({ name }) =>
                <span className={classes.name}><span>{name}</span><Copy value={name} what="name" /></span>,
            },
            { id: 'protocols', title: 'Protocols', cell: ({ protocols }) => protocols.join(', ') },
            {
              id: 'input', title: 'Input, per million', align: 'right',
              cell: model => priceOf(model, 'input'),
            },
            {
              id: 'output', title: 'Output, per million', align: 'right',
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
