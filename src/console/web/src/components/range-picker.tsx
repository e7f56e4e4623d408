import { Button, Popover, Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { FormEvent } from 'react'
import { PRESETS, customRange, presetRange } from '../range.ts'
import type { Preset, TimeRange } from '../range.ts'
import classes from './range-picker.module.css'

export interface RangePickerProps {
  readonly range: TimeRange
  readonly choose: (range: TimeRange) => void
  /** Those that make sense here. */
  readonly presets?: readonly Preset[]
  /** Whole days alone, where money is added up by days. */
  readonly days?: boolean
}

const USUAL: readonly Preset[] = ['1h', '24h', 'today', 'yesterday', '7d', '30d', 'month']

/** Chooses the time that a page is about. It is kept in the address, so that a link shows the same. */
export function RangePicker({ range, choose, presets = USUAL, days = false }: RangePickerProps) {
  const [isOpen, setOpen] = useState(false)
  const data = [
    ...presets.map(preset => ({ value: preset as string, label: PRESETS[preset] as string })),
    { value: 'custom', label: range.preset === 'custom' ? range.label : 'Custom …' },
  ]
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus withRoles={false} shadow="md">
      <Popover.Target>
        <div className={classes.picker}>
          <Select aria-label="Time, UTC" size="sm" w={range.preset === 'custom' && !days ? 300 : 220} data={data}
            value={range.preset} maxDropdownHeight={320} comboboxProps={{ position: 'bottom-end' }}
            rightSectionWidth={26}
            onOptionSubmit={value => {
              if (value === 'custom') setOpen(true)
              else choose(presetRange(value as Preset))
            }} />
        </div>
      </Popover.Target>
      <Popover.Dropdown>
        <CustomRange range={range} days={days} choose={chosen => {
          setOpen(false)
          choose(chosen)
        }} />
      </Popover.Dropdown>
    </Popover>
  )
}

function CustomRange({ range, choose, days }: Pick<RangePickerProps, 'range' | 'choose'> & { readonly days: boolean }) {
  const [start, setStart] = useState(() => written(range.at(Date.now()).from, days))
  const [end, setEnd] = useState(() => lastOf(range.at(Date.now()).to, days))
  const [problem, setProblem] = useState<string | null>(null)
  const type = days ? 'date' : 'datetime-local'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const [first, last] = [momentOf(start), momentOf(end)]
    if (first === null || last === null) {
      setProblem('Give both')
      return
    }
    const beyond = days ? new Date(Date.parse(last) + 86_400_000).toISOString() : last
    if (first >= beyond) setProblem('The end has to be after the start')
    else choose(customRange(first, beyond))
  }
  return (
    <form onSubmit={submit} className={classes.form}>
      <TextInput type={type} label={days ? 'First day, UTC' : 'From, UTC'} value={start} data-autofocus
        onChange={event => { setStart(event.currentTarget.value) }} />
      <TextInput type={type} label={days ? 'Last day, UTC' : 'To, UTC'} value={end} error={problem}
        onChange={event => { setEnd(event.currentTarget.value) }} />
      <Button type="submit">Show</Button>
    </form>
  )
}

/** The end, as it is asked for: of whole days, the last one. */
function lastOf(to: string, days: boolean): string {
  return written(days ? new Date(Date.parse(to) - 1).toISOString() : to, days)
}

/** As an input of the browser wants it. */
function written(moment: string, days: boolean): string {
  return moment.slice(0, days ? 10 : 16)
}

function momentOf(text: string): string | null {
  const time = Date.parse(text.length === 10 ? `${text}T00:00:00Z` : `${text}Z`)
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}
