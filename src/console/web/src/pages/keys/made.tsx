import { Button, Checkbox, CopyButton } from '@mantine/core'
import { IconAlertTriangle, IconCheck, IconCopy } from '@tabler/icons-react'
import { useState } from 'react'
import type { CreatedKey } from '../../../../api/keys.ts'
import classes from './keys.module.css'

/** Shows a new key, this once. It has to be confirmed that it is kept. */
export function CreatedKeyNotice({ made: { name, key }, done }: { readonly made: CreatedKey; readonly done: () => void }) {
  const [isKept, setKept] = useState(false)
  return (
    <div className={classes.form}>
      <p>The key <strong>{name}</strong> works from now on.</p>
      <p className={classes.once}>
        <IconAlertTriangle size={17} stroke={1.8} aria-hidden />
        <span>It is shown this once. The gateway keeps only its SHA-256: nobody can tell it later.</span>
      </p>
      <div className={classes.made}>
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
      <Checkbox label="I have put the key where I will find it again" checked={isKept}
        onChange={event => { setKept(event.currentTarget.checked) }} />
      <div className={classes.buttons}>
        <Button disabled={!isKept} onClick={done}>Done</Button>
      </div>
    </div>
  )
}
