import { Button } from '@mantine/core'
import type { KeyState } from '../../../../api/keys.ts'
import { useApiMutation } from '../../api-hooks.ts'
import { Dialog } from '../../components/page/dialog.tsx'
import { Problem } from '../../components/page/problem.tsx'
import classes from './keys.module.css'

type Action = 'revoke' | 'block' | 'unblock'

export interface ConfirmProps {
  /** The action to confirm; null = the dialog is closed. */
  readonly of: { readonly action: Action; readonly key: KeyState } | null
  readonly close: () => void
  /** @param message - says what was changed */
  readonly done: (message: string) => void
}

const TEXTS: Readonly<Record<Action, { title: string; verb: string; done: string; about: readonly string[] }>> = {
  revoke: {
    title: 'Revoke key',
    verb: 'Revoke',
    done: 'is revoked. Every gateway refuses it',
    about: [
      'New requests with this key get 401. Running requests are stopped.',
      'This cannot be undone. To restore access, create a new key.',
      'Its usage stays in logs and billing.',
    ],
  },
  block: {
    title: 'Block key from gateway.yaml',
    verb: 'Block',
    done: 'is blocked. Every gateway refuses it',
    about: [
      'New requests with this key get 401. Running requests are stopped. The block stays after a reload or ' +
        'restart.',
      'The key stays in gateway.yaml. Delete it there to remove it permanently. You can unblock it here.',
    ],
  },
  unblock: {
    title: 'Unblock key from gateway.yaml',
    verb: 'Unblock',
    done: 'is active again',
    about: ['Requests with this key are accepted again, with the models and limits in gateway.yaml.'],
  },
}

/** Asks the user to confirm before a key is revoked, blocked or unblocked. */
export function Confirm({ of, close, done }: ConfirmProps) {
  return (
    <Dialog opened={of !== null} close={close} title={of && TEXTS[of.action].title}>
      {of && <ConfirmForm action={of.action} of={of.key} close={close} done={done} />}
    </Dialog>
  )
}

interface ConfirmFormProps extends Pick<ConfirmProps, 'close' | 'done'> {
  readonly action: Action
  readonly of: KeyState
}

function ConfirmForm({ action, of: { name }, close, done }: ConfirmFormProps) {
  const remove = useApiMutation('DELETE /keys/:name', ['GET /keys', 'GET /audit'])
  const unblock = useApiMutation('POST /keys/:name/unblock', ['GET /keys', 'GET /audit'])
  const mutation = action === 'unblock' ? unblock : remove
  const { verb, about, done: result } = TEXTS[action]
  const confirm = () => {
    mutation.mutate({ params: { name } }, {
      onSuccess: () => {
        close()
        done(`Key ${name} ${result}.`)
      },
    })
  }
  return (
    <div className={classes.form}>
      <p className={classes.subject}>{name}</p>
      {about.map(text => <p key={text}>{text}</p>)}
      {mutation.error && <Problem error={mutation.error} />}
      <div className={classes.buttons}>
        <Button variant="default" onClick={close} data-autofocus>Cancel</Button>
        <Button className={action === 'unblock' ? undefined : classes.dangerous} loading={mutation.isPending}
          onClick={confirm}>
          {verb} key
        </Button>
      </div>
    </div>
  )
}
