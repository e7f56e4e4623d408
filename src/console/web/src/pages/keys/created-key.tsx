import { Button, Checkbox, CopyButton } from '@mantine/core'
import { IconAlertTriangle, IconCheck, IconCopy } from '@tabler/icons-react'
import { useState } from 'react'
import type { CreatedKey } from '../../../../api/keys.ts'
import classes from './keys.module.css'

export interface CreatedKeyNoticeProps {
  readonly created: CreatedKey
  readonly done: () => void
}

/** Shows a new key, once. The user must confirm that it is saved. */
export function CreatedKeyNotice({ created: { name, key }, done }: CreatedKeyNoticeProps) {
  const [isSaved, setSaved] = useState(false)
  return (
    <div className={classes.form}>
      <p>The key <strong>{name}</strong> is active.</p>
      <p className={classes.once}>
        <IconAlertTriangle size={17} stroke={1.8} aria-hidden />
        <span>Copy the key now. It is shown only once: the gateway stores only its SHA-256 hash.</span>
      </p>
      <div className={classes.created}>
        <code data-testid="new-key">{key}</code>
        <CopyButton value={key} timeout={3000}>
          {({ copied, copy }) => (
            <Button variant="default" size="sm" onClick={copy} data-autofocus
              leftSection={copied ? <IconCheck size={16} aria-hidden />
                : <IconCopy size={16} stroke={1.6} aria-hidden />}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </div>
      <Checkbox label="I have saved the key" checked={isSaved}
        onChange={event => { setSaved(event.currentTarget.checked) }} />
      <div className={classes.buttons}>
        <Button disabled={!isSaved} onClick={done}>Done</Button>
      </div>
    </div>
  )
}
