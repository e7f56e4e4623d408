import { ActionIcon, Button, Menu } from '@mantine/core'
import { IconAdjustments, IconBan, IconChartHistogram, IconDots, IconListDetails, IconLockOpen,
  IconReceipt, IconTrash } from '@tabler/icons-react'
import { useMemo } from 'react'
import { Link } from 'wouter'
import type { KeyState } from '../../../../api/keys.ts'
import { StatusBadge, type Tone } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { LimitLines } from '../../components/limits.tsx'
import { PlaceLink } from '../../components/place-link.tsx'
import { Time } from '../../components/time.tsx'
import { useNow } from '../../use-now.ts'
import { approximate, costText, count, dayUtc, moneyShort } from '../../format.ts'
import { Globs } from './globs.tsx'
import classes from './keys.module.css'

/** Number of keys that are shown at first. Each key has a menu, and hundreds of menus make the page slow. */
const STEP = 50

/** Actions on a key. */
export type KeyAction = 'change' | 'rotate' | 'revoke' | 'block' | 'unblock'

export interface KeyTableProps {
  readonly keys: readonly KeyState[]
  /** Called when an action is chosen; absent = the user is a viewer. */
  readonly onAction?: (action: KeyAction, key: KeyState) => void
  /** true if the key store can be changed. */
  readonly writable: boolean
  /** true if gateway.yaml sets default limits. */
  readonly hasDefaults: boolean
}

export function KeyTable({ keys, onAction, writable, hasDefaults }: KeyTableProps) {
  const columns = useMemo(
    () => columnsFor(onAction, writable, hasDefaults), [onAction, writable, hasDefaults],
  )
  return (
    <DataTable label="Keys, with usage in the last 30 days" rows={keys} columns={columns} phone="cards"
      step={STEP}
      id={({ name, state, created_at }) => `${state} ${created_at} ${name}`} />
  )
}

const STATES: Readonly<Record<KeyState['state'], { tone: Tone; label: string }>> = {
  live: { tone: 'good', label: 'Active' },
  blocked: { tone: 'warn', label: 'Blocked' },
  revoked: { tone: 'plain', label: 'Revoked' },
}

function columnsFor(
  onAction: KeyTableProps['onAction'], writable: boolean, hasDefaults: boolean,
): readonly Column<KeyState>[] {
  const noLimits = hasDefaults ? 'default limits' : 'no limits'
  return [
    ...IDENTITY,
    {
      id: 'limits', title: 'Models and limits', long: 'wrap',
      cell: ({ models, limits }) => (
        <div className={classes.access}>
          <Globs models={models} />
          <LimitLines limits={limits} none={noLimits} />
        </div>
      ),
    },
    ...USAGE,
    {
      id: 'actions', title: '', align: 'right', pinned: true,
      cell: key => <Actions of={key} onAction={onAction} writable={writable} />,
    },
  ]
}

const IDENTITY: readonly Column<KeyState>[] = [
  {
    id: 'name', title: 'Name', sort: ({ name }) => name,
    cell: ({ name, note, origin, place, created_at, prefix }) => (
      <span className={classes.name}>
        <span>{name}</span>
        {note !== null && <small>{note}</small>}
        {prefix !== null && <small className="dim"><code>{prefix}…</code></small>}
        <small className="dim" title={place ?? undefined}>
          {origin === 'config' ? <PlaceLink place={place} />
            : created_at === null ? 'stored key' : `created ${dayUtc(created_at)}`}
        </small>
      </span>
    ),
  },
  {
    id: 'owner', title: 'Owner', long: 'wrap', sort: ({ owner }) => owner ?? '',
    cell: ({ owner, group }) => (
      <span className={classes.name}>
        {owner ?? <span className="dim">none</span>}
        {group !== null && <small>group {group}</small>}
      </span>
    ),
  },
  { id: 'state', title: 'State', sort: ({ state }) => state, cell: key => <State of={key} /> },
]

const USAGE: readonly Column<KeyState>[] = [
  {
    id: 'used', title: 'Last used (UTC)', long: 'wrap', sort: ({ last_used_at }) => last_used_at ?? '',
    cell: ({ last_used_at }) =>
      (last_used_at === null ? <span className="dim">never</span> : <span className={classes.used}><Time at={last_used_at} /></span>),
  },
  {
    id: 'requests', title: 'Requests', align: 'right', sort: ({ figures }) => figures.requests,
    cell: ({ figures }) => count(figures.requests),
  },
  {
    id: 'cost', title: 'Cost', align: 'right', long: 'wrap', sort: ({ figures }) => approximate(figures.cost_usd),
    cell: ({ figures }) => <span className={classes.cost} title={costText(figures)}>{costText(figures, moneyShort)}</span>,
  },
]

function State({ of }: { readonly of: KeyState }) {
  const { state, revoked_at, expires_at, old_secrets } = of
  const now = useNow(60_000)
  const isExpired = state === 'live' && expires_at !== null && Date.parse(expires_at) <= now
  const [oldest] = old_secrets
  return (
    <span className={classes.name} title={revoked_at === null ? undefined : `since ${dayUtc(revoked_at)}`}>
      <span>
        {isExpired ? <StatusBadge tone="bad">Expired</StatusBadge>
          : <StatusBadge tone={STATES[state].tone}>{STATES[state].label}</StatusBadge>}
      </span>
      {expires_at !== null && state !== 'revoked' && (
        <small>{isExpired ? 'since' : 'expires'} <Time at={expires_at} /> UTC</small>
      )}
      {oldest && state === 'live' && <small>old key valid until <Time at={oldest.valid_until} /> UTC</small>}
    </span>
  )
}

interface ActionsProps extends Pick<KeyTableProps, 'writable'> {
  readonly of: KeyState
  readonly onAction: KeyTableProps['onAction']
}

/** The actions on a key. Frequent actions have their own button. */
function Actions({ of: key, onAction, writable }: ActionsProps) {
  const { name, origin, state } = key
  const canChange = onAction !== undefined && writable
  return (
    <span className={classes.actions}>
      {canChange && origin === 'store' && state === 'live' && (
        <Button variant="subtle" size="compact-sm" aria-label={`Rotate ${name}`} onClick={() => { onAction('rotate', key) }}>Rotate</Button>
      )}
      <ActionsMenu of={key} onAction={onAction} writable={writable} />
    </span>
  )
}

function ActionsMenu({ of: key, onAction, writable }: ActionsProps) {
  const { name, origin, state } = key
  const query = new URLSearchParams({ key: name, range: '30d' })
  const canChange = onAction !== undefined && writable
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray"
          aria-label={`Actions for ${name}`}><IconDots size={18} stroke={1.6} /></ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component={Link} href={`/logs?${query}`}
          leftSection={<IconListDetails size={16} stroke={1.6} />}>
          Requests
        </Menu.Item>
        <Menu.Item component={Link} href={`/billing?${query}`}
          leftSection={<IconChartHistogram size={16} stroke={1.6} />}>
          Spend
        </Menu.Item>
        <Menu.Item component={Link} href={`/statement?${new URLSearchParams({ key: name })}`}
          leftSection={<IconReceipt size={16} stroke={1.6} />}>
          Statement
        </Menu.Item>
        {canChange && state !== 'revoked' && <Menu.Divider />}
        {canChange && origin === 'store' && state === 'live' && (
          <>
            <Menu.Item leftSection={<IconAdjustments size={16} stroke={1.6} />}
              onClick={() => { onAction('change', key) }}>
              Change
            </Menu.Item>
            <Menu.Item leftSection={<IconTrash size={16} stroke={1.6} />} className={classes.danger}
              onClick={() => { onAction('revoke', key) }}>
              Revoke
            </Menu.Item>
          </>
        )}
        {canChange && origin === 'config' && state === 'live' && (
          <Menu.Item leftSection={<IconBan size={16} stroke={1.6} />} className={classes.danger}
            onClick={() => { onAction('block', key) }}>
            Block
          </Menu.Item>
        )}
        {canChange && state === 'blocked' && (
          <Menu.Item leftSection={<IconLockOpen size={16} stroke={1.6} />}
            onClick={() => { onAction('unblock', key) }}>
            Unblock
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
