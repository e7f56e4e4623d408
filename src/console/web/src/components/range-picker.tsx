import { ActionIcon, Button, Popover, Select, TextInput, Tooltip } from '@mantine/core'
import { IconZoomOut } from '@tabler/icons-react'
import { useState, type FormEvent } from 'react'
import { PRESETS, presetRange, zoomedOut, type Preset, type TimeRange } from '../range.ts'
import { parseRangeInput, toRangeInput, type RangeErrors } from '../range-input.ts'
import classes from './range-picker.module.css'

export interface RangePickerProps {
  readonly range: TimeRange
  readonly choose: (range: TimeRange) => void
  /** The ranges that the user can choose. */
  readonly presets?: readonly Preset[]
  /** true if only whole days can be chosen. */
  readonly days?: boolean
}

const DEFAULT_PRESETS: readonly Preset[] = ['1h', '24h', 'today', 'yesterday', '7d', '30d', 'month']

/** Selects the time range of a page. The range is a part of the page's URL. */
export function RangePicker({ range, choose, presets = DEFAULT_PRESETS, days = false }: RangePickerProps) {
  const [isOpen, setOpen] = useState(false)
  const data = [
    ...presets.map(preset => ({ value: preset as string, label: PRESETS[preset] as string })),
    { value: 'custom', label: range.preset === 'custom' ? range.label : 'Custom …' },
  ]
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus withRoles={false} shadow="md">
      <Popover.Target>
        <div className={classes.picker}>
          <Select aria-label="Time range (UTC)" size="sm" w={range.preset === 'custom' && !days ? 300 : 220}
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

/** Doubles the time range. */
export function ZoomOut({ range, choose }: Pick<RangePickerProps, 'range' | 'choose'>) {
  return (
    <Tooltip label="Zoom out">
      <ActionIcon variant="default" size="lg" aria-label="Zoom out"
        onClick={() => { choose(zoomedOut(range, Date.now())) }}>
        <IconZoomOut size={17} stroke={1.6} />
      </ActionIcon>
    </Tooltip>
  )
}

interface CustomRangeProps extends Pick<RangePickerProps, 'range' | 'choose'> {
  readonly days: boolean
}

function CustomRange({ range, choose, days }: CustomRangeProps) {
  const [text, setText] = useState(() => toRangeInput(range.at(Date.now()), days))
  const [errors, setErrors] = useState<RangeErrors>({})
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const parsed = parseRangeInput(text, days)
    if ('range' in parsed) choose(parsed.range)
    else setErrors(parsed.errors)
  }
  const field = (end: 'from' | 'to', label: string) => (
    <TextInput label={`${label} (UTC)`} placeholder={days ? 'YYYY-MM-DD' : 'YYYY-MM-DD HH:mm'}
      className="numbers"
      spellCheck={false} autoComplete="off" value={text[end]} error={errors[end]}
      data-autofocus={end === 'from' || undefined}
      onChange={({ currentTarget: { value } }) => { setText(before => ({ ...before, [end]: value })) }} />
  )
  return (
    <form onSubmit={submit} className={classes.form}>
      {field('from', days ? 'First day' : 'From')}
      {field('to', days ? 'Last day' : 'To')}
      <Button type="submit">Apply</Button>
    </form>
  )
}
