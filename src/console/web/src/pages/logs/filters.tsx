import { Button, Select, TextInput } from '@mantine/core'
import { IconFilterOff, IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import type { FormEvent } from 'react'
import { useLocation } from 'wouter'
import { useApiQuery } from '../../ask.ts'
import { END_LABELS } from '../../ends.ts'
import { FILTERS, narrowFilter, parsePastedId, withoutOf } from './filter.ts'
import type { LogFilter, NameFilter } from './filter.ts'
import classes from './logs.module.css'

export interface FiltersProps {
  readonly filter: LogFilter
  readonly change: (change: Record<string, string | null>) => void
  readonly forKey: boolean
}

const STATUSES = [
  { value: '2xx', label: '2xx: success' },
  { value: '4xx', label: '4xx: the client’s fault' },
  { value: '5xx', label: '5xx: a failure' },
  { value: '401', label: '401: wrong key' },
  { value: '404', label: '404: no such model' },
  { value: '429', label: '429: over a limit' },
  { value: '499', label: '499: client left' },
  { value: '502', label: '502: upstream failed' },
  { value: '503', label: '503: unavailable' },
  { value: '504', label: '504: timed out' },
  { value: 'none', label: 'Nothing was sent' },
]

const ENDS = [
  { value: 'failed', label: 'Any failure' },
  ...Object.entries(END_LABELS).map(([value, label]) => ({ value, label })),
]

/** Chooses which requests are shown, or opens one by its id. */
export function Filters({ filter, change, forKey }: FiltersProps) {
  const names = useApiQuery('GET /filters', {}).data
  return (
    <div className={classes.filters}>
      <FindById />
      {!forKey && <NameChoice label="Key" name="key" filter={filter} change={change} names={names?.keys} />}
      <NameChoice label="Model" name="model" filter={filter} change={change} names={names?.models} />
      {!forKey && <NameChoice label="Upstream" name="upstream" filter={filter} change={change}
        names={names?.upstreams} />}
      <Choice label="Status" value={filter.status} choose={status => { change({ status }) }}
        data={STATUSES} />
      <Choice label="End" value={filter.end} choose={end => { change({ end }) }} data={ENDS} />
    </div>
  )
}

/** Takes all conditions away; nothing where there are none. */
export function ShowAll({ filter, change }: Pick<FiltersProps, 'filter' | 'change'>) {
  if (FILTERS.every(name => filter[name] === undefined)) return null
  return (
    <Button variant="default" size="xs" leftSection={<IconFilterOff size={15} stroke={1.6} aria-hidden />}
      onClick={() => { change(Object.fromEntries(FILTERS.map(name => [name, null]))) }}>
      Show all
    </Button>
  )
}

interface NameChoiceProps extends Pick<FiltersProps, 'filter' | 'change'> {
  readonly label: string
  readonly name: NameFilter
  readonly names: readonly string[] | undefined
}

/** Stands for none among names, which clients choose: they have 256 characters at most. */
const NONE = '-'.repeat(257)

function NameChoice({ label, name, filter, change, names }: NameChoiceProps) {
  const data = [
    { value: NONE, label: `No ${name}` },
    ...(names ?? []).map(each => ({ value: each, label: each })),
  ]
  return (
    <Choice label={label} data={data} value={withoutOf(filter.without).includes(name) ? NONE : filter[name]}
      choose={chosen => { change(narrowFilter(filter, name, chosen === NONE ? null : chosen ?? undefined)) }} />
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string | undefined
  /** null: any. */
  readonly choose: (value: string | null) => void
  readonly data: readonly { readonly value: string; readonly label: string }[]
}

/** One condition. What stands in the address can be chosen too,
  whether the ledger knows it of late or not. */
function Choice({ label, value, choose, data }: ChoiceProps) {
  const options = value === undefined || data.some(option => option.value === value) ? data
    : [...data, { value, label: value }]
  return (
    <Select label={label} size="sm" className={classes.choice} placeholder="Any" searchable clearable
      data={options} value={value ?? null} nothingFoundMessage="Nothing of that name" maxDropdownHeight={320}
      clearButtonProps={{ 'aria-label': `Any ${label.toLowerCase()}` }}
      onChange={choose} />
  )
}

function FindById() {
  const [, navigate] = useLocation()
  const [text, setText] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const id = parsePastedId(text)
    if (id !== '') navigate(`/logs/${encodeURIComponent(id)}`)
  }
  return (
    <search className={classes.find}>
      <form onSubmit={submit}>
        <TextInput label="Request id" size="sm" placeholder="Paste one, then Enter" value={text}
          spellCheck={false}
          autoComplete="off" leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      </form>
    </search>
  )
}
