import { Button, Modal, TagsInput, TextInput } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { FormEvent } from 'react'
import type { KeyState } from '../../../../api/keys.ts'
import { ApiError } from '../../api.ts'
import { useApiMutation, useApiQuery } from '../../ask.ts'
import { Problem } from '../../components/problem.tsx'
import { changeOf, fieldsOf, keyOf, NO_RATES, fieldErrors } from './fields.ts'
import type { KeyFields } from './fields.ts'
import { ModelLine, RateInputs } from './inputs.tsx'
import classes from './keys.module.css'
import { CreatedKeyNotice } from './made.tsx'

export interface KeyDialogProps {
  /** A key to change, or `new`; null = closed. */
  readonly of: KeyState | 'new' | null
  readonly close: () => void
}

/** Makes a key, or changes what one may do. */
export function KeyDialog({ of, close }: KeyDialogProps) {
  const make = useApiMutation('POST /keys', ['GET /keys', 'GET /audit'])
  const { data: made } = make
  const leave = () => {
    // Who leaves now would never see the key.
    if (make.isPending) return
    make.reset()
    close()
  }
  const isShown = made !== undefined
  return (
    <Modal opened={of !== null} onClose={leave} size="lg" closeOnEscape={!isShown} closeOnClickOutside={false}
      withCloseButton={!isShown} title={isShown ? 'The new key' : of === 'new' ? 'New key'
        : 'Change models and limits'}>
      {isShown ? <CreatedKeyNotice made={made} done={leave} />
        : of !== null && <KeyForm of={of === 'new' ? null : of} make={make} close={leave} />}
    </Modal>
  )
}

interface KeyFormProps {
  readonly of: KeyState | null
  readonly make: ReturnType<typeof useApiMutation<'POST /keys'>>
  readonly close: () => void
}

function KeyForm({ of, make, close }: KeyFormProps) {
  const [before] = useState<KeyFields>(() => fieldsOf(of))
  const [fields, setFields] = useState(before)
  const [isTried, setTried] = useState(false)
  const models = useApiQuery('GET /models', {}).data?.models ?? []
  const patch = useApiMutation('PATCH /keys/:name', ['GET /keys', 'GET /audit'])
  const { isPending, error } = of === null ? make : patch
  const wrong = isTried ? fieldErrors(fields) : {}
  const change = (news: Partial<KeyFields>) => { setFields(before => ({ ...before, ...news })) }
  const { byModel } = fields
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (Object.keys(fieldErrors(fields)).length > 0) return
    if (of === null) make.mutate({ body: keyOf(fields) })
    else patch.mutate({ params: { name: of.name }, body: changeOf(fields, before) }, { onSuccess: close })
  }
  const isOfName = error instanceof ApiError && error.field === 'name'
  return (
    <form onSubmit={submit} className={classes.form} noValidate>
      {of === null
        ? <TextInput label="Name"
          description="What logs and billing call it. Everybody may see it." required data-autofocus
            value={fields.name} error={wrong['name']
              ?? (isOfName ? error.message : undefined)} autoComplete="off"
            onChange={event => { change({ name: event.currentTarget.value }) }} />
        : <p className={classes.subject}>{of.name}</p>}
      <TagsInput label="Models" value={[...fields.models]} data={models.map(({ name }) => name)}
        splitChars={[',', ' ']}
        description="Names or patterns such as gpt-*, each followed by Enter. Empty: every model."
        acceptValueOnBlur
        placeholder={fields.models.length === 0 ? 'All' : ''} maxDropdownHeight={240}
        onChange={chosen => { change({ models: chosen }) }} />
      <fieldset className={classes.limits}>
        <legend>Limits</legend>
        <p className="dim">What is left empty is held to the limits that gateway.yaml sets for every key,
          if any.</p>
        <RateInputs rates={fields.rates} wrong={wrong} prefix="" change={rates => { change({ rates }) }} />
      </fieldset>
      {byModel.map(line => (
        <ModelLine key={line.id} line={line} wrong={wrong}
          change={news => {
            change({ byModel: byModel.map(other => (other.id === line.id ? news : other)) })
          }}
          remove={() => { change({ byModel: byModel.filter(({ id }) => id !== line.id) }) }} />
      ))}
      <Button variant="subtle" size="compact-sm" className={classes.add} leftSection={<IconPlus size={15} />}
        onClick={() => {
          change({ byModel: [...byModel, { id: nextId(fields), glob: '', rates: NO_RATES }] })
        }}>
        Limits for some models
      </Button>
      {error && !isOfName && <Problem error={error} />}
      <div className={classes.buttons}>
        <Button variant="default" disabled={make.isPending} onClick={close}>Cancel</Button>
        <Button type="submit" loading={isPending}>{of === null ? 'Create key' : 'Save'}</Button>
      </div>
    </form>
  )
}

function nextId({ byModel }: KeyFields): number {
  return Math.max(-1, ...byModel.map(({ id }) => id)) + 1
}
