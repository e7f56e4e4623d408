import { Button, Select, TextInput } from '@mantine/core'
import { IconFilterOff, IconSearch } from '@tabler/icons-react'
import { useState, type FormEvent } from 'react'
import { useLocation } from 'wouter'
import { ApiError } from '../../api.ts'
import { useApiQuery } from '../../api-hooks.ts'
import { END_LABELS } from '../../end-labels.ts'
import { FILTERS, parsePastedId, narrowFilter, withoutOf, type LogFilter, type NameFilter } from './filter.ts'
import classes from './logs.module.css'

export interface FiltersProps {
  readonly filter: LogFilter
  readonly change: (changes: Record<string, string | null>) => void
  readonly forKey: boolean
  /** The error of the last query; null = none. */
  readonly error: Error | null
}

const STATUSES = [
  { value: '2xx', label: '2xx: success' },
  { value: '4xx', label: '4xx: client error' },
  { value: '5xx', label: '5xx: server error' },
  { value: '401', label: '401: invalid key' },
  { value: '404', label: '404: not found' },
  { value: '429', label: '429: limit exceeded' },
  { value: '499', label: '499: client disconnected' },
  { value: '502', label: '502: upstream error' },
  { value: '503', label: '503: unavailable' },
  { value: '504', label: '504: timeout' },
  { value: 'none', label: 'No status sent' },
]

const ENDS = [
  { value: 'failed', label: 'Any failure' },
  ...Object.entries(END_LABELS).map(([value, label]) => ({ value, label })),
]

/** Filters the requests, or opens the request with an ID. */
export function Filters({ filter, change, forKey, error }: FiltersProps) {
  const names = useApiQuery('GET /filters', {}).data
  return (
    <div className={classes.filters}>
      <QueryBar filter={filter} change={change} error={error} />
      <FindById />
      {!forKey && <NameFilterSelect label="Key" name="key" filter={filter} change={change}
        names={names?.keys} />}
      <NameFilterSelect label="Model" name="model" filter={filter} change={change} names={names?.models} />
      {!forKey && <NameFilterSelect label="Upstream" name="upstream" filter={filter} change={change}
        names={names?.upstreams} />}
      <FilterSelect label="Status" value={filter.status} choose={status => { change({ status }) }}
        data={STATUSES} />
      <FilterSelect label="Outcome" value={filter.end} choose={end => { change({ end }) }} data={ENDS} />
    </div>
  )
}

/** A button that removes all filters. It is hidden if no filter is set. */
export function ClearFilters({ filter, change }: Pick<FiltersProps, 'filter' | 'change'>) {
  if (FILTERS.every(name => filter[name] === undefined)) return null
  return (
    <Button variant="default" size="xs" leftSection={<IconFilterOff size={15} stroke={1.6} aria-hidden />}
      onClick={() => { change(Object.fromEntries(FILTERS.map(name => [name, null]))) }}>
      Clear filters
    </Button>
  )
}

const EXAMPLE = 'status:5xx model:gpt-* -error:rate_limit cost>0.01 ttft>2s'

/** An input for a text query. Enter applies the query; an error message contains the column. */
function QueryBar({ filter, change, error }: Pick<FiltersProps, 'filter' | 'change' | 'error'>) {
  const applied = filter.q ?? ''
  // The text that was typed after `over` was applied. If the URL gets another query, that query replaces the text.
  const [typed, setTyped] = useState({ over: applied, text: applied })
  const text = typed.over === applied ? typed.text : applied
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change({ q: text.trim() })
  }
  const isOwnError = error instanceof ApiError && error.field === 'q'
  return (
    <form onSubmit={submit} className={classes.query}>
      <TextInput label="Query" size="sm" placeholder={EXAMPLE} value={text} classNames={{ input: 'mono' }} spellCheck={false}
        autoComplete="off" maxLength={1000} {...isOwnError && { error: error.message }}
        onChange={event => { setTyped({ over: applied, text: event.currentTarget.value }) }} />
      <Button type="submit" variant="default" size="sm">Search</Button>
    </form>
  )
}

interface NameFilterSelectProps extends Pick<FiltersProps, 'filter' | 'change'> {
  readonly label: string
  readonly name: NameFilter
  readonly names: readonly string[] | undefined
}

/** Value of the option "none". It has 257 characters, so it cannot be a name: names have at most 256. */
const NONE = '-'.repeat(257)

function NameFilterSelect({ label, name, filter, change, names }: NameFilterSelectProps) {
  const data = [
    { value: NONE, label: `No ${name}` },
    ...(names ?? []).map(each => ({ value: each, label: each })),
  ]
  return (
    <FilterSelect label={label} data={data}
      value={withoutOf(filter.without).includes(name) ? NONE : filter[name]}
      choose={chosen => { change(narrowFilter(filter, name, chosen === NONE ? null : chosen ?? undefined)) }} />
  )
}

interface FilterSelectProps {
  readonly label: string
  readonly value: string | undefined
  /** Called with the chosen value; null = no filter. */
  readonly choose: (value: string | null) => void
  readonly data: readonly { readonly value: string; readonly label: string }[]
}

/** A select for one filter. The value in the page's URL is an option even if the ledger has no recent request with it. */
function FilterSelect({ label, value, choose, data }: FilterSelectProps) {
  const options = value === undefined || data.some(option => option.value === value) ? data
    : [...data, { value, label: value }]
  return (
    <Select label={label} size="sm" className={classes.choice} placeholder="Any" searchable clearable
      data={options} value={value ?? null} nothingFoundMessage="No match" maxDropdownHeight={320}
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
        <TextInput label="Request ID" size="sm" placeholder="Paste an ID, press Enter" value={text}
          spellCheck={false}
          autoComplete="off" leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
          onChange={event => { setText(event.currentTarget.value) }} />
      </form>
    </search>
  )
}
