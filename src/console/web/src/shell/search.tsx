import { Button, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { useLocation } from 'wouter'
import { Dialog } from '../components/page/dialog.tsx'
import { parsePastedId } from '../pages/logs/filter.ts'

/** A dialog that opens the request with an ID. */
export function Search({ opened, close }: { readonly opened: boolean; readonly close: () => void }) {
  const [, navigate] = useLocation()
  const [id, setId] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const pasted = parsePastedId(id)
    if (pasted === '') return
    close()
    setId('')
    navigate(`/logs/${encodeURIComponent(pasted)}`)
  }
  return (
    <Dialog opened={opened} close={close} title="Find a request">
      <form onSubmit={submit}>
        <TextInput label="Request ID" description="The x-gateway-request-id response header" data-autofocus
          value={id}
          spellCheck={false} autoComplete="off" onChange={event => { setId(event.currentTarget.value) }} />
        <Button type="submit" mt="md" fullWidth>Open</Button>
      </form>
    </Dialog>
  )
}
