import { Button, Popover, Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { FormEvent } from 'react'
import { PRESETS, presetRange } from '../range.ts'
import type { Preset, TimeRange } from '../range.ts'
import { parseRangeInput, toRangeInput } from '../written-range.ts'
import type { RangeErrors } from '../written-range.ts'
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
          <Select aria-label="Time, UTC" size="sm" w={range.preset === 'custom' && !days ? 300 : 220}
            data={data}
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

interface CustomRangeProps extends Pick<RangePickerProps, 'range' | 'choose'> {
  readonly days: boolean
}

function CustomRange({ range, choose, days }: CustomRangeProps) {
  const [written, setWritten] = useState(() => toRangeInput(range.at(Date.now()), days))
  const [faults, setFaults] = useState<RangeErrors>({})
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const read = parseRangeInput(written, days)
    if ('range' in read) choose(read.range)
    else setFaults(read.faults)
  }
  const field = (end: 'from' | 'to', label: string) => (
    <TextInput label={`${label}, UTC`} placeholder={days ? 'YYYY-MM-DD' : 'YYYY-MM-DD HH:mm'}
      className="numbers"
      spellCheck={false} autoComplete="off" value={written[end]} error={faults[end]}
      data-autofocus={end === 'from' || undefined}
      onChange={({ currentTarget: { value } }) => { setWritten(before => ({ ...before, [end]: value })) }} />
  )
  return (
    <form onSubmit={submit} className={classes.form}>
      {field('from', days ? 'First day' : 'From')}
      {field('to', days ? 'Last day' : 'To')}
      <Button type="submit">Show</Button>
    </form>
  )
}
