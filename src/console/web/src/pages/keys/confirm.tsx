import { Button, Modal } from '@mantine/core'
import type { KeyState } from '../../../../api/keys.ts'
import { useApiMutation } from '../../ask.ts'
import { Problem } from '../../components/problem.tsx'
import classes from './keys.module.css'
import type { KeyAction } from './table.tsx'

export interface ConfirmProps {
  /** null = closed. */
  readonly of: { readonly deed: Exclude<KeyAction, 'change'>; readonly key: KeyState } | null
  readonly close: () => void
}

const TEXTS: Readonly<Record<Exclude<KeyAction, 'change'>,
  { title: string; verb: string; about: readonly string[] }>> = {
  revoke: {
    title: 'Revoke a key',
    verb: 'Revoke',
    about: [
      'Requests with it are refused from now on, with 401, and those under way are ended.',
      'This cannot be undone: whoever still needs access gets a new key.',
      'What it used stays in logs and billing.',
    ],
  },
  block: {
    title: 'Block a key of gateway.yaml',
    verb: 'Block',
    about: [
      'Requests with it are refused from now on, with 401, and those under way are ' +
        'ended. A reload or a restart ' +
        'changes nothing in that.',
      'It stays in gateway.yaml. Take it out there when it is to be gone for good. You can unblock it here.',
    ],
  },
  unblock: {
    title: 'Unblock a key of gateway.yaml',
    verb: 'Unblock',
    about: ['Requests with it are taken again at once, with the models and limits of gateway.yaml.'],
  },
}

/** Asks before a key is shut out or let in, and says what that means. */
export function Confirm({ of, close }: ConfirmProps) {
  return (
    <Modal opened={of !== null} onClose={close} title={of && TEXTS[of.deed].title}>
      {of && <Question deed={of.deed} of={of.key} close={close} />}
    </Modal>
  )
}

function Question({ deed, of: { name }, close }: { readonly deed: Exclude<KeyAction,
  'change'>; readonly of: KeyState; readonly close: () => void }) {
  const remove = useApiMutation('DELETE /keys/:name', ['GET /keys', 'GET /audit'])
  const unblock = useApiMutation('POST /keys/:name/unblock', ['GET /keys', 'GET /audit'])
  const action = deed === 'unblock' ? unblock : remove
  const { verb, about } = TEXTS[deed]
  return (
    <div className={classes.form}>
      <p className={classes.subject}>{name}</p>
      {about.map(text => <p key={text}>{text}</p>)}
      {action.error && <Problem error={action.error} />}
      <div className={classes.buttons}>
        <Button variant="default" onClick={close} data-autofocus>Cancel</Button>
        <Button className={deed === 'unblock' ? undefined : classes.dangerous} loading={action.isPending}
          onClick={() => { action.mutate({ params: { name } }, { onSuccess: close }) }}>
          {verb} this key
        </Button>
      </div>
    </div>
  )
}
