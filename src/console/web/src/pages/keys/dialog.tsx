import { Button, Select, TagsInput, TextInput } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState, type FormEvent } from 'react'
import type { Keys, KeyState } from '../../../../api/keys.ts'
import { ApiError } from '../../api.ts'
import { useApiMutation, useApiQuery } from '../../api-hooks.ts'
import { Dialog } from '../../components/page/dialog.tsx'
import { Problem } from '../../components/page/problem.tsx'
import { changeOf, fieldsOf, keyOf, NO_RATES, fieldErrors, type KeyFields } from './fields.ts'
import { ModelLine, RateInputs } from './inputs.tsx'
import classes from './keys.module.css'
import { CreatedKeyNotice } from './created-key.tsx'

export interface KeyDialogProps {
  /** The key to change; `new` = create a key; null = the dialog is closed. */
  readonly of: KeyState | 'new' | null
  readonly groups: Keys['groups']
  readonly close: () => void
  /** @param message - says what was changed */
  readonly done: (message: string) => void
}

/** A dialog that creates a key, or changes a key. */
export function KeyDialog({ of, groups, close, done }: KeyDialogProps) {
  const create = useApiMutation('POST /keys', ['GET /keys', 'GET /audit'])
  const { data: created } = create
  const leave = () => {
    // Keep the dialog open until the new key arrives, because the key is shown only once.
    if (create.isPending) return
    if (created) done(`Key ${created.name} is created and active.`)
    create.reset()
    close()
  }
  return (
    <Dialog opened={of !== null} close={leave} size="lg" dismissible={created === undefined}
      closeOnClickOutside={false} title={created ? 'Key created' : of === 'new' ? 'New key' : 'Change key'}>
      {created
        ? <CreatedKeyNotice created={created} done={leave}
            about={<>The key <strong>{created.name}</strong> is active.</>} />
        : of !== null && (
          <KeyForm of={of === 'new' ? null : of} groups={groups} create={create} close={leave} done={done} />
        )}
    </Dialog>
  )
}

interface KeyFormProps extends Pick<KeyDialogProps, 'groups' | 'close' | 'done'> {
  readonly of: KeyState | null
  readonly create: ReturnType<typeof useApiMutation<'POST /keys'>>
}

function KeyForm({ of, groups, create, close, done }: KeyFormProps) {
  const [before] = useState<KeyFields>(() => fieldsOf(of))
  const [fields, setFields] = useState(before)
  const [isSubmitted, setSubmitted] = useState(false)
  const models = useApiQuery('GET /models', {}).data?.models ?? []
  const patch = useApiMutation('PATCH /keys/:name', ['GET /keys', 'GET /audit'])
  const { isPending, error } = of === null ? create : patch
  const errors = isSubmitted ? fieldErrors(fields) : {}
  const change = (changes: Partial<KeyFields>) => { setFields(before => ({ ...before, ...changes })) }
  const { byModel } = fields
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setSubmitted(true)
    if (Object.keys(fieldErrors(fields)).length > 0) return
    if (of === null) create.mutate({ body: keyOf(fields) })
    else {
      const body = changeOf(fields, before)
      patch.mutate({ params: { name: of.name }, body }, {
        onSuccess: () => {
          close()
          done(changeText(of.name, Object.keys(body)))
        },
      })
    }
  }
  const isNameError = error instanceof ApiError && error.field === 'name'
  return (
    <form onSubmit={submit} className={classes.form} noValidate>
      {of === null
        ? <TextInput label="Name"
          description="Shown in logs and billing. Not secret." required data-autofocus
            value={fields.name} error={errors['name']
              ?? (isNameError ? error.message : undefined)} autoComplete="off"
            onChange={event => { change({ name: event.currentTarget.value }) }} />
        : <p className={classes.subject}>{of.name}</p>}
      <TagsInput label="Models" value={[...fields.models]} data={models.map(({ name }) => name)}
        splitChars={[',', ' ']}
        description="Names or patterns such as gpt-*. Press Enter after each one. Empty: all models."
        acceptValueOnBlur
        placeholder={fields.models.length === 0 ? 'All' : ''} maxDropdownHeight={240}
        onChange={chosen => { change({ models: chosen }) }} />
      <div className={classes.described}>
        <TextInput label="Owner" description="Who is responsible" value={fields.owner} maxLength={128}
          autoComplete="off" onChange={event => { change({ owner: event.currentTarget.value }) }} />
        <TextInput label="Expires (UTC)" description="First day without access" type="date" value={fields.expires}
          onChange={event => { change({ expires: event.currentTarget.value }) }} />
        {groups.length > 0 && (
          <Select label="Group" description="Its limits are shared" value={fields.group}
            data={[{ value: '', label: 'none' }, ...groups.map(({ name }) => ({ value: name, label: name }))]}
            onChange={value => { change({ group: value ?? '' }) }} />
        )}
      </div>
      <TextInput label="Note" description="What the key is for" value={fields.note} maxLength={512}
        autoComplete="off" onChange={event => { change({ note: event.currentTarget.value }) }} />
      <fieldset className={classes.limits}>
        <legend>Limits</legend>
        <p className="dim">An empty field uses the default limit in gateway.yaml, if there is one.</p>
        <RateInputs rates={fields.rates} errors={errors} prefix="" change={rates => { change({ rates }) }} />
      </fieldset>
      {byModel.map(line => (
        <ModelLine key={line.id} line={line} errors={errors}
          change={changed => {
            change({ byModel: byModel.map(other => (other.id === line.id ? changed : other)) })
          }}
          remove={() => { change({ byModel: byModel.filter(({ id }) => id !== line.id) }) }} />
      ))}
      <Button variant="subtle" size="compact-sm" className={classes.add} leftSection={<IconPlus size={15} />}
        onClick={() => {
          change({ byModel: [...byModel, { id: nextId(fields), glob: '', rates: NO_RATES }] })
        }}>
        Add limits for some models
      </Button>
      {error && !isNameError && <Problem error={error} />}
      <div className={classes.buttons}>
        <Button variant="default" disabled={create.isPending} onClick={close}>Cancel</Button>
        <Button type="submit" loading={isPending}>{of === null ? 'Create key' : 'Save'}</Button>
      </div>
    </form>
  )
}

const PART_TEXTS: Readonly<Record<string, string>> = { expires_at: 'expiry' }

function changeText(name: string, parts: readonly string[]): string {
  if (parts.length === 0) return `Key ${name} is unchanged.`
  return `Key ${name} is changed: ${parts.map(part => PART_TEXTS[part] ?? part).join(', ')}.`
}

function nextId({ byModel }: KeyFields): number {
  return Math.max(-1, ...byModel.map(({ id }) => id)) + 1
}
