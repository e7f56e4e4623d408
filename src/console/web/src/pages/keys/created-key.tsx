import { Button, Checkbox, CopyButton } from '@mantine/core'
import { IconAlertTriangle, IconCheck, IconCopy } from '@tabler/icons-react'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import type { CreatedKey } from '../../../../api/keys.ts'
import classes from './keys.module.css'

export interface CreatedKeyNoticeProps {
  readonly created: CreatedKey
  /** Says which secrets are active now. */
  readonly about: ReactNode
  readonly done: () => void
}

/** Shows a new key once. The user must confirm that the key is saved. */
export function CreatedKeyNotice({ created: { key }, about, done }: CreatedKeyNoticeProps) {
  const [isSaved, setSaved] = useState(false)
  const copyButton = useRef<HTMLButtonElement>(null)
  useEffect(() => { copyButton.current?.focus() }, [])
  return (
    <div className={classes.form}>
      <p>{about}</p>
      <p className={classes.once}>
        <IconAlertTriangle size={17} stroke={1.8} aria-hidden />
        <span>Copy the key now. It is shown only once: the gateway stores only its SHA-256 hash.</span>
      </p>
      <div className={classes.created}>
        <code data-testid="new-key">{key}</code>
        <CopyButton value={key} timeout={3000}>
          {({ copied, copy }) => (
            <Button variant="default" size="sm" onClick={copy} ref={copyButton}
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
