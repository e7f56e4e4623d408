import { Button, TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import type { Callers } from '../../../../api/keys.ts'
import { useApiMutation, useApiQuery } from '../../api-hooks.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { LimitLines } from '../../components/limits.tsx'
import { Dialog } from '../../components/page/dialog.tsx'
import { Section } from '../../components/page/page.tsx'
import { Problem } from '../../components/page/problem.tsx'
import { Empty } from '../../components/page/states.tsx'
import { Time } from '../../components/time.tsx'
import { approximate, costText, count, counted, moneyShort } from '../../format.ts'
import classes from './keys.module.css'

type Caller = Callers['callers'][number]

/** Number of callers that are shown at first. */
const STEP = 50

export interface CallerTableProps {
  /** true if the user may block callers. */
  readonly canBlock: boolean
  /** @param message - says what was changed */
  readonly done: (message: string) => void
}

/** Callers with tokens: who they are, what they may do, and a button that blocks them. Hidden if there are none. */
export function CallerTable({ canBlock, done }: CallerTableProps) {
  const { data } = useApiQuery('GET /callers', {})
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<Caller | null>(null)
  if (data === undefined || data.callers.length === 0) return null
  const shown = data.callers.filter(({ name, groups }) => [name, ...groups].some(each => each.toLowerCase().includes(text.trim().toLowerCase())))
  const more = data.total > data.callers.length ? `, ${count(data.callers.length)} of ${count(data.total)}` : ''
  return (
    <Section title="Callers" flush about={`People and programs with tokens of an issuer, with usage in the last 30 days${more}`} actions={
      <TextInput size="sm" aria-label="Filter callers" placeholder="Name, group" value={text}
        leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
        onChange={event => { setText(event.currentTarget.value) }} />
    }>
      {shown.length === 0 ? <Empty title="No matching callers" />
        : <DataTable label="Callers" rows={shown} id={({ name }) => name} phone="cards" step={STEP} columns={[
            {
              id: 'name', title: 'Name', sort: ({ name }) => name, long: 'wrap',
              cell: ({ name, issuer }) => <span className={classes.name}><span>{name}</span><small className="dim">{issuer}</small></span>,
            },
            {
              id: 'group', title: 'Group', long: 'wrap', sort: ({ groups }) => groups.join(),
              cell: ({ groups }) => (groups.length === 0 ? <span className="dim">none</span> : groups.join(', ')),
            },
            {
              id: 'state', title: 'State', sort: ({ state }) => state,
              cell: ({ state }) => (state === 'live' ? <StatusBadge tone="good">Active</StatusBadge> : <StatusBadge tone="warn">Blocked</StatusBadge>),
            },
            { id: 'limits', title: 'Limits', long: 'wrap', cell: ({ limits }) => <LimitLines limits={limits} none="no limits" /> },
            {
              id: 'keys', title: 'Keys', sort: ({ keys }) => keys,
              cell: ({ keys, keys_allowed: allowed }) => (allowed === 0 ? <span className="dim">none allowed</span> : `${keys} of ${allowed}`),
            },
            {
              id: 'used', title: 'Last used (UTC)', sort: ({ last_used_at: at }) => at ?? '',
              cell: ({ last_used_at: at }) => (at === null ? <span className="dim">never</span> : <Time at={at} />),
            },
            {
              id: 'requests', title: 'Requests', align: 'right', sort: ({ figures }) => figures.requests,
              cell: ({ figures }) => count(figures.requests),
            },
            {
              id: 'cost', title: 'Cost', align: 'right', sort: ({ figures }) => approximate(figures.cost_usd),
              cell: ({ figures }) => <span title={costText(figures)}>{costText(figures, moneyShort)}</span>,
            },
            {
              id: 'actions', title: '', align: 'right', pinned: true,
              cell: caller => canBlock && (
                <Button variant="subtle" size="compact-sm" onClick={() => { setChosen(caller) }}
                  aria-label={`${caller.state === 'live' ? 'Block' : 'Unblock'} ${caller.name}`}>
                  {caller.state === 'live' ? 'Block' : 'Unblock'}
                </Button>
              ),
            },
          ]} />}
      <BlockDialog of={chosen} close={() => { setChosen(null) }} done={done} />
    </Section>
  )
}

interface BlockDialogProps extends Pick<CallerTableProps, 'done'> {
  readonly of: Caller | null
  readonly close: () => void
}

function BlockDialog({ of, close, done }: BlockDialogProps) {
  const stale = ['GET /callers', 'GET /keys', 'GET /audit'] as const
  const block = useApiMutation('POST /callers/:name/block', stale)
  const unblock = useApiMutation('POST /callers/:name/unblock', stale)
  const isLive = of?.state === 'live'
  const mutation = isLive ? block : unblock
  const verb = isLive ? 'Block' : 'Unblock'
  const leave = () => {
    mutation.reset()
    close()
  }
  const confirm = (name: string) => {
    mutation.mutate({ params: { name } }, {
      onSuccess: () => {
        leave()
        done(isLive ? `Caller ${name} is blocked. Every gateway refuses it.` : `Caller ${name} is active again.`)
      },
    })
  }
  return (
    <Dialog opened={of !== null} close={leave} title={`${verb} caller`}>
      {of && (
        <div className={classes.form}>
          <p className={classes.subject}>{of.name}</p>
          <p>
            {isLive
              ? `Its tokens and keys (${counted(of.keys, 'key')}) get 401. Running requests are stopped.`
              : 'Its tokens are accepted again, and so are the keys that it has made.'}
          </p>
          {mutation.error && <Problem error={mutation.error} />}
          <div className={classes.buttons}>
            <Button variant="default" onClick={leave} data-autofocus>Cancel</Button>
            <Button className={isLive ? classes.dangerous : undefined} loading={mutation.isPending}
              onClick={() => { confirm(of.name) }}>
              {verb} caller
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}
