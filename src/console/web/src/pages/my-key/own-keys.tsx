import { Button, Select, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { ApiError, type ResponseOf } from '../../api.ts'
import { useApiMutation } from '../../api-hooks.ts'
import { DataTable } from '../../components/data-table.tsx'
import { Dialog } from '../../components/page/dialog.tsx'
import { Section } from '../../components/page/page.tsx'
import { Problem } from '../../components/page/problem.tsx'
import { Empty } from '../../components/page/states.tsx'
import { Time } from '../../components/time.tsx'
import { CreatedKeyNotice } from '../keys/created-key.tsx'
import classes from '../keys/keys.module.css'

type Data = ResponseOf<'GET /own/keys'>
type OwnKey = Data['keys'][number]

const DAY_MS = 86_400_000

/** The keys that the caller has made, and a button for a new one. Hidden from users who may have none. */
export function OwnKeys({ data }: { readonly data: Data }) {
  const [isOpen, setOpen] = useState(false)
  const [revoking, setRevoking] = useState<OwnKey | null>(null)
  const { allowed, keys } = data
  const live = keys.filter(({ expired }) => !expired).length
  if (allowed === 0 && keys.length === 0) return null
  return (
    <Section title="My keys" about={`${live} of ${allowed} keys. They have your name, limits and group`} flush
      actions={<Button size="xs" disabled={live >= allowed} onClick={() => { setOpen(true) }}>New key</Button>}>
      {keys.length === 0
        ? <Empty title="No keys">Make a key for programs that cannot log in.</Empty>
        : <DataTable label="My keys" rows={keys} id={({ label }) => label} columns={[
            { id: 'label', title: 'Label', long: 'wrap', cell: ({ label }) => label },
            { id: 'prefix', title: 'Key', cell: ({ prefix }) => <code>{prefix === null ? '–' : `${prefix}…`}</code> },
            { id: 'created', title: 'Created', cell: ({ created_at: at }) => <Time at={at} /> },
            {
              id: 'expires', title: 'Expires',
              cell: ({ expires_at: at, expired }) => (expired ? 'Expired' : at === null ? '–' : <Time at={at} />),
            },
            {
              id: 'revoke', title: 'Actions', align: 'right',
              cell: key => (
                <Button size="compact-xs" variant="default" aria-label={`Revoke ${key.label}`}
                  onClick={() => { setRevoking(key) }}>
                  Revoke
                </Button>
              ),
            },
          ]} />}
      <NewKeyDialog isOpen={isOpen} maxDays={data.max_days} close={() => { setOpen(false) }} />
      <RevokeDialog of={revoking} close={() => { setRevoking(null) }} />
    </Section>
  )
}

interface NewKeyDialogProps {
  readonly isOpen: boolean
  readonly maxDays: number
  readonly close: () => void
}

function NewKeyDialog({ isOpen, maxDays, close }: NewKeyDialogProps) {
  const [label, setLabel] = useState('')
  const [days, setDays] = useState('30')
  const create = useApiMutation('POST /own/keys', ['GET /own/keys'])
  const { data: created, error, isPending } = create
  const leave = () => {
    // Keep the dialog open until the new key arrives, because the key is shown only once.
    if (isPending) return
    create.reset()
    setLabel('')
    close()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate({ body: { label: label.trim(), expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() } })
  }
  const isLabelError = error instanceof ApiError && (error.field === 'label' || error.field === 'name')
  return (
    <Dialog opened={isOpen} close={leave} dismissible={created === undefined} closeOnClickOutside={false}
      title={created ? 'Key created' : 'New key'}>
      {created
        ? <CreatedKeyNotice created={created} done={leave} about={<>The key <strong>{created.name}</strong> is active.</>} />
        : <form onSubmit={submit} className={classes.form}>
            <TextInput label="Label" description="What the key is for" required data-autofocus maxLength={64} autoComplete="off"
              value={label} error={isLabelError ? error.message : undefined}
              onChange={event => { setLabel(event.currentTarget.value) }} />
            <Select label="Expires" value={days} onChange={value => { if (value !== null) setDays(value) }}
              data={[7, 30, maxDays].map(count => ({ value: String(count), label: `in ${count} days` }))} />
            {error && !isLabelError && <Problem error={error} />}
            <div className={classes.buttons}>
              <Button variant="default" disabled={isPending} onClick={leave}>Cancel</Button>
              <Button type="submit" loading={isPending} disabled={label.trim() === ''}>Create key</Button>
            </div>
          </form>}
    </Dialog>
  )
}

function RevokeDialog({ of, close }: { readonly of: OwnKey | null, readonly close: () => void }) {
  const revoke = useApiMutation('DELETE /own/keys/:label', ['GET /own/keys'])
  const leave = () => {
    revoke.reset()
    close()
  }
  return (
    <Dialog opened={of !== null} close={leave} title="Revoke key">
      {of && (
        <div className={classes.form}>
          <p className={classes.subject}>{of.label}</p>
          <p>New requests with this key get 401. Running requests are stopped. This cannot be undone.</p>
          {revoke.error && <Problem error={revoke.error} />}
          <div className={classes.buttons}>
            <Button variant="default" onClick={leave} data-autofocus>Cancel</Button>
            <Button className={classes.dangerous} loading={revoke.isPending}
              onClick={() => { revoke.mutate({ params: { label: of.label } }, { onSuccess: leave }) }}>
              Revoke key
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}
