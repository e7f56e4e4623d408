import { ActionIcon, NativeSelect, TextInput } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { PER_PERIOD } from '../../format.ts'
import { COUNTS, type ModelRates, type RateFields } from './fields.ts'
import classes from './keys.module.css'

const LABELS = {
  requests_per_minute: 'Requests per minute',
  tokens_per_minute: 'Tokens per minute',
  concurrent: 'Concurrent requests',
} as const

const PERIODS = Object.entries(PER_PERIOD).map(([value, label]) => ({ value, label }))

export interface RateInputsProps {
  readonly rates: RateFields
  /** Error texts; each key is the prefix and the name of a field. */
  readonly errors: Readonly<Record<string, string>>
  readonly prefix: string
  readonly change: (rates: RateFields) => void
}

/** Inputs for the limits of a key or of some models. */
export function RateInputs({ rates, errors, prefix, change }: RateInputsProps) {
  return (
    <div className={classes.rates}>
      {COUNTS.map(name => (
        <TextInput key={name} label={LABELS[name]} value={rates[name]} error={errors[prefix + name]}
          inputMode="numeric"
          placeholder="Default" autoComplete="off" onChange={event => { change({ ...rates,
            [name]: event.currentTarget.value }) }} />
      ))}
      <div className={classes.budget}>
        <TextInput label="Budget (USD)" value={rates.usd} error={errors[`${prefix}usd`]} inputMode="decimal"
          placeholder="Default"
          autoComplete="off" onChange={event => { change({ ...rates, usd: event.currentTarget.value }) }} />
        <NativeSelect aria-label="Budget period (UTC)" data={PERIODS} value={rates.per}
          onChange={event => { change({ ...rates, per: event.currentTarget.value as RateFields['per'] }) }} />
      </div>
    </div>
  )
}

export interface ModelLineProps {
  readonly line: ModelRates
  readonly errors: Readonly<Record<string, string>>
  readonly change: (line: ModelRates) => void
  readonly remove: () => void
}

/** Inputs for the limits of some models. They apply in addition to the limits of the key. */
export function ModelLine({ line, errors, change, remove }: ModelLineProps) {
  const prefix = `${line.id}.`
  return (
    <fieldset className={classes.limits}>
      <legend>Limits for some models</legend>
      <div className={classes.glob}>
        <TextInput label="Models" value={line.glob} error={errors[`${prefix}glob`]} placeholder="gpt-4*"
          autoComplete="off"
          onChange={event => { change({ ...line, glob: event.currentTarget.value }) }} />
        <ActionIcon variant="subtle" color="gray" size="lg" onClick={remove}
          aria-label={`Remove limits for ${line.glob === '' ? 'these models' : line.glob}`}>
          <IconTrash size={17} stroke={1.6} />
        </ActionIcon>
      </div>
      <RateInputs rates={line.rates} errors={errors} prefix={prefix}
        change={rates => { change({ ...line, rates }) }} />
    </fieldset>
  )
}
