import { Button, Switch, TextInput } from '@mantine/core'
import { IconKey, IconPlus, IconSearch } from '@tabler/icons-react'
import { useCallback, useMemo, useState } from 'react'
import type { Keys, KeyState } from '../../../api/keys.ts'
import { useApiQuery } from '../ask.ts'
import { Notice } from '../components/notice.tsx'
import { LimitLines } from '../components/limits.tsx'
import { Page, Section, Stack } from '../components/page.tsx'
import { QueryView, Empty } from '../components/states.tsx'
import { useUser } from '../session.ts'
import { Confirm } from './keys/confirm.tsx'
import type { ConfirmProps } from './keys/confirm.tsx'
import { FindKey } from './keys/find.tsx'
import { KeyDialog } from './keys/dialog.tsx'
import type { KeyDialogProps } from './keys/dialog.tsx'
import classes from './keys/keys.module.css'
import { KeyTable } from './keys/table.tsx'
import type { KeyAction } from './keys/table.tsx'

/** Who may use the gateway. */
export default function KeysPage() {
  const isAdmin = useUser().role === 'admin'
  const keys = useApiQuery('GET /keys', {})
  const [edited, setEdited] = useState<KeyDialogProps['of']>(null)
  const [asked, setAsked] = useState<ConfirmProps['of']>(null)
  const [isFinding, setFinding] = useState(false)
  const act = useCallback((deed: KeyAction, key: KeyState) => {
    if (deed === 'change') setEdited(key)
    else setAsked({ deed, key })
  }, [])
  const cutOff = (name: string) => {
    setFinding(false)
    const key = keys.data?.keys.find(key => key.name === name && key.state === 'live')
    if (key) setAsked({ deed: key.origin === 'config' ? 'block' : 'revoke', key })
  }
  const canMake = isAdmin && keys.data?.store.writable === true
  return (
    <Page title="Keys" about="Who may use the gateway, and what each one used in the last 30 days."
      actions={canMake && <>
        <Button variant="default" leftSection={<IconKey size={16} stroke={1.6} aria-hidden />}
          onClick={() => { setFinding(true) }}>Whose key is this?</Button>
        <Button leftSection={<IconPlus size={16} aria-hidden />}
          onClick={() => { setEdited('new') }}>New key</Button>
      </>}>
      <QueryView of={keys} height={420}>
        {data => <KeyList keys={data} {...isAdmin && { act }} />}
      </QueryView>
      <KeyDialog of={edited} close={() => { setEdited(null) }} />
      <Confirm of={asked} close={() => { setAsked(null) }} />
      <FindKey opened={isFinding} close={() => { setFinding(false) }} cutOff={cutOff} />
    </Page>
  )
}

interface KeyListProps {
  readonly keys: Keys
  readonly act?: (deed: KeyAction, key: KeyState) => void
}

function KeyList({ keys: { keys, store, default_limits }, act }: KeyListProps) {
  const [text, setText] = useState('')
  const [withRevoked, setWithRevoked] = useState(false)
  const wanted = text.trim().toLowerCase()
  const shown = useMemo(() => keys.filter(({ name, state }) =>
    name.toLowerCase().includes(wanted) && (withRevoked || wanted !== '' || state !== 'revoked')),
      [keys, wanted, withRevoked])
  const revoked = keys.filter(({ state }) => state === 'revoked').length
  return (
    <Stack>
      {!store.writable
        && <Notice tone="warn">
          Keys cannot be made or changed here: {store.reason ?? 'the store is not to be had'}.
        </Notice>}
      <Section title="Keys of this gateway" flush actions={
        <div className={classes.tools}>
          {revoked > 0 && <Switch size="sm" label={`Revoked too (${revoked})`} checked={withRevoked}
            onChange={event => { setWithRevoked(event.currentTarget.checked) }} />}
          <TextInput size="sm" aria-label="Filter by name" placeholder="Filter by name" value={text}
            leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
            onChange={event => { setText(event.currentTarget.value) }} />
        </div>
      }>
        {shown.length === 0
          ? <Empty title={keys.length === 0 ? 'There is no key' : 'No key of that name'}>
              {keys.length === 0 ? 'Without keys nobody gets in, unless gateway.yaml says auth: open.' : null}
            </Empty>
          : <KeyTable keys={shown} writable={store.writable} {...act && { act }} />}
      </Section>
      {default_limits !== null && (
        <Section title="Limits of every key"
          about="From gateway.yaml, for each key that does not set its own.">
          <LimitLines limits={default_limits} />
        </Section>
      )}
    </Stack>
  )
}
