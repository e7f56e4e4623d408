import { ActionIcon, NativeSelect, TextInput } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { COUNTS } from './fields.ts'
import type { ModelRates, RateFields } from './fields.ts'
import classes from './keys.module.css'

const LABELS = {
  requests_per_minute: 'Requests a minute',
  tokens_per_minute: 'Tokens a minute',
  concurrent: 'At a time',
} as const

const PERIODS = [
  { value: 'day', label: 'a day' },
  { value: 'month', label: 'a month' },
  { value: 'total', label: 'in total' },
]

export interface RateInputsProps {
  readonly rates: RateFields
  /** What to change, by the name of the field after the prefix. */
  readonly wrong: Readonly<Record<string, string>>
  readonly prefix: string
  readonly change: (rates: RateFields) => void
}

/** How much a key may do. */
export function RateInputs({ rates, wrong, prefix, change }: RateInputsProps) {
  return (
    <div className={classes.rates}>
      {COUNTS.map(name => (
        <TextInput key={name} label={LABELS[name]} value={rates[name]} error={wrong[prefix + name]}
          inputMode="numeric"
          placeholder="No limit" autoComplete="off" onChange={event => { change({ ...rates,
            [name]: event.currentTarget.value }) }} />
      ))}
      <div className={classes.budget}>
        <TextInput label="Budget, USD" value={rates.usd} error={wrong[`${prefix}usd`]} inputMode="decimal"
          placeholder="No limit"
          autoComplete="off" onChange={event => { change({ ...rates, usd: event.currentTarget.value }) }} />
        <NativeSelect aria-label="Period of the budget, UTC" data={PERIODS} value={rates.per}
          onChange={event => { change({ ...rates, per: event.currentTarget.value as RateFields['per'] }) }} />
      </div>
    </div>
  )
}

export interface ModelLineProps {
  readonly line: ModelRates
  readonly wrong: Readonly<Record<string, string>>
  readonly change: (line: ModelRates) => void
  readonly remove: () => void
}

/** Limits of some models, within those of the key. */
export function ModelLine({ line, wrong, change, remove }: ModelLineProps) {
  const prefix = `${line.id}.`
  return (
    <fieldset className={classes.limits}>
      <legend>Limits for some models</legend>
      <div className={classes.glob}>
        <TextInput label="Models" value={line.glob} error={wrong[`${prefix}glob`]} placeholder="gpt-4*"
          autoComplete="off"
          onChange={event => { change({ ...line, glob: event.currentTarget.value }) }} />
        <ActionIcon variant="subtle" color="gray" size="lg" onClick={remove}
          aria-label={`Remove the limits for ${line.glob === '' ? 'these models' : line.glob}`}>
          <IconTrash size={17} stroke={1.6} />
        </ActionIcon>
      </div>
      <RateInputs rates={line.rates} wrong={wrong} prefix={prefix}
        change={rates => { change({ ...line, rates }) }} />
    </fieldset>
  )
}
