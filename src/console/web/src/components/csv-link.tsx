import { Button } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'

/** A link that downloads a table as CSV. @param href - undefined = the URL is not known yet */
export function CsvLink({ href }: { readonly href: string | undefined }) {
  return (
    <Button component="a" variant="default" leftSection={<IconDownload size={16} stroke={1.6} aria-hidden />}
      download {...href === undefined ? { disabled: true, role: 'link', 'aria-disabled': true } : { href }}>
      CSV
    </Button>
  )
}
