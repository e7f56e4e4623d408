import { Button, Modal, PasswordInput } from '@mantine/core'
import { useState } from 'react'
import type { FormEvent } from 'react'
import type { KeyOwner } from '../../../../api/keys.ts'
import type { ResponseOf } from '../../api.ts'
import { useApiMutation } from '../../ask.ts'
import { Problem } from '../../components/problem.tsx'
import classes from './keys.module.css'

type Owner = NonNullable<ResponseOf<'POST /keys/find'>['owner']>

export interface FindProps {
  readonly opened: boolean
  readonly close: () => void
  /** Takes the key away, or its block. */
  readonly cutOff: (name: string) => void
}

/** Says whose a key is that turned up where it should not be. */
export function FindKey({ opened, close, cutOff }: FindProps) {
  return (
    <Modal opened={opened} onClose={close} title="Whose key is this?">
      <Question close={close} cutOff={cutOff} />
    </Modal>
  )
}

function Question({ close, cutOff }: Omit<FindProps, 'opened'>) {
  const find = useApiMutation('POST /keys/find')
  const [key, setKey] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    find.mutate({ body: { key: key.trim() } })
  }
  const owner = find.data?.owner
  return (
    <form className={classes.form} onSubmit={submit}>
      <PasswordInput label="The key"
        description="All of it. It is compared by its SHA-256, and written down nowhere."
        required withAsterisk={false} autoComplete="off" spellCheck={false} value={key} data-autofocus
        visibilityToggleButtonProps={{ 'aria-label': 'Show the key' }}
        onChange={event => {
          setKey(event.currentTarget.value)
          find.reset()
        }} />
      {find.error && <Problem error={find.error} />}
      <output className={owner === undefined ? 'unseen' : undefined}>
        {owner !== undefined && told(owner)}
      </output>
      <div className={classes.buttons}>
        <Button variant="default" onClick={close}>Close</Button>
        {owner?.state === 'live'
          ? <Button className={classes.dangerous} onClick={() => { cutOff(owner.name) }}>Cut it off …</Button>
          : <Button type="submit" loading={find.isPending}>Find</Button>}
      </div>
    </form>
  )
}

function told(owner: KeyOwner['owner']): string {
  if (owner === null) {
    return 'It is no key of this gateway: there is nothing to cut off. Was all of it copied?'
  }
  return `It is the key ${owner.name}, ${STATES[owner.state]}.`
}

const STATES: Readonly<Record<Owner['state'], string>> = {
  live: 'and it is let in',
  blocked: 'which is blocked already',
  revoked: 'which is revoked already',
}
