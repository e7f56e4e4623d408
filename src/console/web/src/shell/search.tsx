import { Button, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { FormEvent } from 'react'
import { useLocation } from 'wouter'
import { parsePastedId } from '../pages/logs/filter.ts'

/** Goes to the story of a request, by the id that the gateway gave it. */
export function Search({ opened, close }: { readonly opened: boolean; readonly close: () => void }) {
  const [, navigate] = useLocation()
  const [id, setId] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const wanted = parsePastedId(id)
    if (wanted === '') return
    close()
    setId('')
    navigate(`/logs/${encodeURIComponent(wanted)}`)
  }
  return (
    <Modal opened={opened} onClose={close} title="Find a request">
      <form onSubmit={submit}>
        <TextInput label="Request id" description="The x-gateway-request-id of its answer" data-autofocus
          value={id}
          spellCheck={false} autoComplete="off" onChange={event => { setId(event.currentTarget.value) }} />
        <Button type="submit" mt="md" fullWidth>Open</Button>
      </form>
    </Modal>
  )
}
