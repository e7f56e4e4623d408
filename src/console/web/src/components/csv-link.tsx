import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'

/** Downloads a table as CSV. @param href - undefined while it is not known */
export function CsvLink({ href }: { readonly href: string | undefined }) {
  return (
    <Button component="a" variant="default" leftSection={<IconDownload size={16} stroke={1.6} aria-hidden />}
      download {...href === undefined ? { disabled: true, role: 'link', 'aria-disabled': true } : { href }}>
      CSV
    </Button>
  )
}
