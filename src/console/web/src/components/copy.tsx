import { ActionIcon, CopyButton, Tooltip } from '@mantine/core'
import { IconCheck, IconCopy } from '@tabler/icons-react'

/** A button that copies a value. @param what - name of the value, such as `request ID` */
export function Copy({ value, what }: { readonly value: string; readonly what: string }) {
  return (
    <CopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : `Copy ${what}`}>
          <ActionIcon size="sm" variant="subtle" color="gray" onClick={copy}
            aria-label={copied ? `Copied ${what}` : `Copy ${what}`}>
            {copied ? <IconCheck size={15} stroke={2} /> : <IconCopy size={15} stroke={1.6} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}
