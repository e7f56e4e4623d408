import { Button, Switch, TextInput } from '@mantine/core'
import { IconKey, IconPlus, IconSearch } from '@tabler/icons-react'
import { useCallback, useMemo, useState } from 'react'
import type { Keys, KeyState } from '../../../api/keys.ts'
import { useApiQuery } from '../api-hooks.ts'
import { Notice } from '../components/page/notice.tsx'
import { LimitLines } from '../components/limits.tsx'
import { Page, Section, Stack } from '../components/page/page.tsx'
import { QueryView, Empty } from '../components/page/states.tsx'
import { useUser } from '../session.ts'
import { CallerTable } from './keys/callers.tsx'
import { Confirm, type ConfirmProps } from './keys/confirm.tsx'
import { FindKey } from './keys/find.tsx'
import { KeyDialog, type KeyDialogProps } from './keys/dialog.tsx'
import classes from './keys/keys.module.css'
import { GroupTable } from './keys/groups.tsx'
import { RotateDialog } from './keys/rotate.tsx'
import { KeyTable, type KeyAction } from './keys/table.tsx'

/** The API keys, with dialogs that create, change, revoke and block them. */
export default function KeysPage() {
  const isAdmin = useUser().role === 'admin'
  const keys = useApiQuery('GET /keys', {})
  const [edited, setEdited] = useState<KeyDialogProps['of']>(null)
  const [confirming, setConfirming] = useState<ConfirmProps['of']>(null)
  const [rotated, setRotated] = useState<KeyState | null>(null)
  const [isFinding, setFinding] = useState(false)
  const [message, setMessage] = useState<string | null>(null)
  const onAction = useCallback((action: KeyAction, key: KeyState) => {
    setMessage(null)
    if (action === 'change') setEdited(key)
    else if (action === 'rotate') setRotated(key)
    else setConfirming({ action, key })
  }, [])
  const revokeOrBlock = (name: string) => {
    setFinding(false)
    const key = keys.data?.keys.find(key => key.name === name && key.state === 'live')
    if (key) setConfirming({ action: key.origin === 'config' ? 'block' : 'revoke', key })
  }
  const canCreate = isAdmin && keys.data?.store.writable === true
  return (
    <Page title="Keys" about="API keys, with their usage in the last 30 days."
      actions={canCreate && <>
        <Button variant="default" leftSection={<IconKey size={16} stroke={1.6} aria-hidden />}
          onClick={() => { setFinding(true) }}>Look up a key</Button>
        <Button leftSection={<IconPlus size={16} aria-hidden />}
          onClick={() => {
            setMessage(null)
            setEdited('new')
          }}>New key</Button>
      </>}>
      <output className={classes.message}>{message !== null && <Notice tone="good">{message}</Notice>}</output>
      <QueryView of={keys} height={420}>
        {data => <KeyList keys={data} {...isAdmin && { onAction }} />}
      </QueryView>
      <CallerTable canBlock={canCreate} done={setMessage} />
      <KeyDialog of={edited} groups={keys.data?.groups ?? []} close={() => { setEdited(null) }} done={setMessage} />
      <RotateDialog of={rotated} close={() => { setRotated(null) }} done={setMessage} />
      <Confirm of={confirming} close={() => { setConfirming(null) }} done={setMessage} />
      <FindKey opened={isFinding} close={() => { setFinding(false) }} revokeOrBlock={revokeOrBlock} />
    </Page>
  )
}

interface KeyListProps {
  readonly keys: Keys
  readonly onAction?: (action: KeyAction, key: KeyState) => void
}

function KeyList({ keys: { keys, groups, store, default_limits }, onAction }: KeyListProps) {
  const [text, setText] = useState('')
  const [withRevoked, setWithRevoked] = useState(false)
  const search = text.trim().toLowerCase()
  const shown = useMemo(() => keys.filter(({ name, owner, group, note, prefix, state }) =>
    [name, owner, group, note, prefix].some(text => text?.toLowerCase().includes(search) === true)
      && (withRevoked || search !== '' || state !== 'revoked')), [keys, search, withRevoked])
  const revoked = keys.filter(({ state }) => state === 'revoked').length
  return (
    <Stack>
      {!store.writable
        && <Notice tone="warn">
          Keys cannot be created or changed here: {store.reason ?? 'the key store is not available'}.
        </Notice>}
      <Section title="API keys" flush actions={
        <div className={classes.tools}>
          {revoked > 0 && <Switch size="sm" label={`Show revoked (${revoked})`} checked={withRevoked}
            onChange={event => { setWithRevoked(event.currentTarget.checked) }} />}
          <TextInput size="sm" aria-label="Filter keys" placeholder="Name, owner, group, note" value={text}
            leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
            onChange={event => { setText(event.currentTarget.value) }} />
        </div>
      }>
        {shown.length === 0
          ? <Empty title={keys.length === 0 ? 'No keys' : 'No matching keys'}>
              {keys.length === 0
                ? 'Without keys, all requests are refused, unless gateway.yaml sets auth: open.' : null}
            </Empty>
          : <KeyTable keys={shown} writable={store.writable} hasDefaults={default_limits !== null}
              {...onAction && { onAction }} />}
      </Section>
      {groups.length > 0 && <GroupTable groups={groups} keys={keys} />}
      {default_limits !== null && (
        <Section title="Default limits"
          about="From gateway.yaml. They apply where a key sets no limit of its own.">
          <LimitLines limits={default_limits} />
        </Section>
      )}
    </Stack>
  )
}
