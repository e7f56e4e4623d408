import { Button, Select, TextInput } from '@mantine/core'
import { IconFilterOff, IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import type { FormEvent } from 'react'
import { useLocation } from 'wouter'
import { useAsk } from '../../ask.ts'
import { END_WORDS } from '../../ends.ts'
import { FILTERS, pastedId } from './filter.ts'
import type { LogFilter } from './filter.ts'
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
  { value: 'failed', label: 'Failed, in any way' },
  ...Object.entries(END_WORDS).map(([value, label]) => ({ value, label })),
]

/** Chooses which requests are shown, or opens one by its id. */
export function Filters({ filter, change, forKey }: FiltersProps) {
  const names = useAsk('GET /filters', {}).data
  const isFiltered = FILTERS.some(name => filter[name] !== undefined)
  return (
    <div className={classes.filters}>
      <FindById />
      {!forKey && <Choice label="Key" name="key" filter={filter} change={change} data={plain(names?.keys)} />}
      <Choice label="Model" name="model" filter={filter} change={change} data={plain(names?.models)} />
      {!forKey && <Choice label="Upstream" name="upstream" filter={filter} change={change}
        data={plain(names?.upstreams)} />}
      <Choice label="Status" name="status" filter={filter} change={change} data={STATUSES} />
      <Choice label="End" name="end" filter={filter} change={change} data={ENDS} />
      {isFiltered && (
        <Button variant="subtle" color="gray" size="sm" leftSection={<IconFilterOff size={16} stroke={1.6} />}
          onClick={() => { change(Object.fromEntries(FILTERS.map(name => [name, null]))) }}>
          Show all
        </Button>
      )}
    </div>
  )
}

function plain(names: readonly string[] | undefined) {
  return (names ?? []).map(name => ({ value: name, label: name }))
}

interface ChoiceProps extends Pick<FiltersProps, 'filter' | 'change'> {
  readonly label: string
  readonly name: (typeof FILTERS)[number]
  readonly data: readonly { readonly value: string; readonly label: string }[]
}

/** One condition. What stands in the address can be chosen too,
  whether the ledger knows it of late or not. */
function Choice({ label, name, filter, change, data }: ChoiceProps) {
  const value = filter[name] ?? null
  const options = value === null || data.some(option => option.value === value) ? data
    : [...data, { value, label: value }]
  return (
    <Select label={label} size="sm" className={classes.choice} placeholder="Any" searchable clearable
      data={options} value={value} nothingFoundMessage="Nothing of that name" maxDropdownHeight={320}
      clearButtonProps={{ 'aria-label': `Any ${label.toLowerCase()}` }}
      onChange={chosen => { change({ [name]: chosen }) }} />
  )
}

function FindById() {
  const [, navigate] = useLocation()
  const [text, setText] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const id = pastedId(text)
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
