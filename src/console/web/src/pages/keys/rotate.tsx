import { Button, Select } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import type { KeyState } from '../../../../api/keys.ts'
import { useApiMutation } from '../../api-hooks.ts'
import { Dialog } from '../../components/page/dialog.tsx'
import { Problem } from '../../components/page/problem.tsx'
import classes from './keys.module.css'
import { CreatedKeyNotice } from './created-key.tsx'

/** The grace periods to choose from, in seconds, during which the old secret stays valid. */
const GRACES = [
  { value: '0', label: 'Not at all: refuse it at once' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '24 hours' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
] as const

export interface RotateDialogProps {
  /** The key to rotate; null = the dialog is closed. */
  readonly of: KeyState | null
  readonly close: () => void
  /** @param message - says what was changed */
  readonly done: (message: string) => void
}

/** A dialog that replaces the secret of a key. The old secret stays valid for some time, so that clients can be updated. */
export function RotateDialog({ of, close, done }: RotateDialogProps) {
  const [grace, setGrace] = useState('86400')
  const rotate = useApiMutation('POST /keys/:name/rotate', ['GET /keys', 'GET /audit'])
  const { data: rotated, isPending } = rotate
  const label = GRACES.find(({ value }) => value === grace)?.label
  const old = grace === '0' ? 'The old key is refused' : `The old key stays valid for ${label}`
  const leave = () => {
    // Keep the dialog open until the new key arrives, because the key is shown only once.
    if (isPending) return
    if (rotated) done(`Key ${rotated.name} is rotated. ${old}.`)
    rotate.reset()
    close()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (of) rotate.mutate({ params: { name: of.name }, body: { grace_seconds: Number(grace) } })
  }
  return (
    <Dialog opened={of !== null} close={leave} dismissible={rotated === undefined} closeOnClickOutside={false}
      title={rotated ? 'Key rotated' : 'Rotate key'}>
      {rotated
        ? <CreatedKeyNotice created={rotated} done={leave}
            about={<>The key <strong>{rotated.name}</strong> has a new secret. {old}.</>} />
        : of && (
          <form onSubmit={submit} className={classes.form}>
            <p className={classes.subject}>{of.name}</p>
            <p>The key gets a new secret. Its name, limits and usage stay.</p>
            <Select label="Old key stays valid for" data={GRACES} value={grace} data-autofocus
              onChange={value => { if (value !== null) setGrace(value) }} />
            {rotate.error && <Problem error={rotate.error} />}
            <div className={classes.buttons}>
              <Button variant="default" disabled={isPending} onClick={leave}>Cancel</Button>
              <Button type="submit" loading={isPending}>Rotate key</Button>
            </div>
          </form>
        )}
    </Dialog>
  )
}
