import { Button, PasswordInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import type { KeyOwner } from '../../../../api/keys.ts'
import type { ResponseOf } from '../../api.ts'
import { useApiMutation } from '../../api-hooks.ts'
import { Dialog } from '../../components/page/dialog.tsx'
import { Problem } from '../../components/page/problem.tsx'
import classes from './keys.module.css'

type Owner = NonNullable<ResponseOf<'POST /keys/find'>['owner']>

export interface FindProps {
  readonly opened: boolean
  readonly close: () => void
  /** Opens the dialog that confirms the revocation or the block of the key. */
  readonly revokeOrBlock: (name: string) => void
}

/** A dialog that finds the name and the state of a key, for example of a key that was leaked. */
export function FindKey({ opened, close, revokeOrBlock }: FindProps) {
  return (
    <Dialog opened={opened} close={close} title="Look up a key">
      <FindForm close={close} revokeOrBlock={revokeOrBlock} />
    </Dialog>
  )
}

function FindForm({ close, revokeOrBlock }: Omit<FindProps, 'opened'>) {
  const find = useApiMutation('POST /keys/find')
  const [key, setKey] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    find.mutate({ body: { key: key.trim() } })
  }
  const owner = find.data?.owner
  return (
    <form className={classes.form} onSubmit={submit}>
      <PasswordInput label="API key"
        description="The full key. Only its SHA-256 hash is compared. The key is not stored."
        required withAsterisk={false} autoComplete="off" spellCheck={false} value={key} data-autofocus
        visibilityToggleButtonProps={{ 'aria-label': 'Show key' }}
        onChange={event => {
          setKey(event.currentTarget.value)
          find.reset()
        }} />
      {find.error && <Problem error={find.error} />}
      <output className={owner === undefined ? 'unseen' : undefined}>
        {owner !== undefined && ownerText(owner)}
      </output>
      <div className={classes.buttons}>
        <Button variant="default" onClick={close}>Close</Button>
        {owner?.state === 'live'
          ? <Button className={classes.dangerous} onClick={() => { revokeOrBlock(owner.name) }}>
              {owner.origin === 'config' ? 'Block …' : 'Revoke …'}
            </Button>
          : <Button type="submit" loading={find.isPending}>Find</Button>}
      </div>
    </form>
  )
}

function ownerText(owner: KeyOwner['owner']): string {
  if (owner === null) {
    return 'Not a key of this gateway. Check that the full key was pasted.'
  }
  return `Key: ${owner.name}. State: ${STATES[owner.state]}.`
}

const STATES: Readonly<Record<Owner['state'], string>> = {
  live: 'active',
  blocked: 'blocked',
  revoked: 'revoked',
}
