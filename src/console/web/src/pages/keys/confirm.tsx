import { Button, Modal } from '@mantine/core'
import type { KeyState } from '../../../../api/keys.ts'
import { useApiMutation } from '../../api-hooks.ts'
import { Problem } from '../../components/problem.tsx'
import classes from './keys.module.css'
import type { KeyAction } from './table.tsx'

export interface ConfirmProps {
  /** null: the dialog is closed. */
  readonly of: { readonly action: Exclude<KeyAction, 'change'>; readonly key: KeyState } | null
  readonly close: () => void
}

const TEXTS: Readonly<Record<Exclude<KeyAction, 'change'>,
  { title: string; verb: string; about: readonly string[] }>> = {
  revoke: {
    title: 'Revoke key',
    verb: 'Revoke',
    about: [
      'New requests with this key get 401. Running requests are stopped.',
      'This cannot be undone. To restore access, create a new key.',
      'Its usage stays in logs and billing.',
    ],
  },
  block: {
    title: 'Block key from gateway.yaml',
    verb: 'Block',
    about: [
      'New requests with this key get 401. Running requests are stopped. The block stays after a reload or ' +
        'restart.',
      'The key stays in gateway.yaml. Delete it there to remove it permanently. You can unblock it here.',
    ],
  },
  unblock: {
    title: 'Unblock key from gateway.yaml',
    verb: 'Unblock',
    about: ['Requests with this key are accepted again, with the models and limits in gateway.yaml.'],
  },
}

/** Asks for confirmation before a key is revoked, blocked or unblocked. */
export function Confirm({ of, close }: ConfirmProps) {
  return (
    <Modal opened={of !== null} onClose={close} title={of && TEXTS[of.action].title}>
      {of && <ConfirmForm action={of.action} of={of.key} close={close} />}
    </Modal>
  )
}

interface ConfirmFormProps {
  readonly action: Exclude<KeyAction, 'change'>
  readonly of: KeyState
  readonly close: () => void
}

function ConfirmForm({ action, of: { name }, close }: ConfirmFormProps) {
  const remove = useApiMutation('DELETE /keys/:name', ['GET /keys', 'GET /audit'])
  const unblock = useApiMutation('POST /keys/:name/unblock', ['GET /keys', 'GET /audit'])
  const mutation = action === 'unblock' ? unblock : remove
  const { verb, about } = TEXTS[action]
  return (
    <div className={classes.form}>
      <p className={classes.subject}>{name}</p>
      {about.map(text => <p key={text}>{text}</p>)}
      {mutation.error && <Problem error={mutation.error} />}
      <div className={classes.buttons}>
        <Button variant="default" onClick={close} data-autofocus>Cancel</Button>
        <Button className={action === 'unblock' ? undefined : classes.dangerous} loading={mutation.isPending}
          onClick={() => { mutation.mutate({ params: { name } }, { onSuccess: close }) }}>
          {verb} key
        </Button>
      </div>
    </div>
  )
}
