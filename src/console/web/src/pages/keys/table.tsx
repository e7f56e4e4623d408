import { ActionIcon, Menu } from '@mantine/core'
import { IconAdjustments, IconBan, IconChartHistogram, IconDots, IconListDetails, IconLockOpen,
  IconTrash } from '@tabler/icons-react'
import { useMemo } from 'react'
import { Link } from 'wouter'
import type { KeyState } from '../../../../api/keys.ts'
import { StatusBadge } from '../../components/badges.tsx'
import type { Tone } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { LimitLines } from '../../components/limits.tsx'
import { Time } from '../../components/time.tsx'
import { approximate, count, dayUtc, money, moneyShort } from '../../format.ts'
import classes from './keys.module.css'

/** Keys that are shown at first. */
const STEP = 200

/** What can be done to a key. */
export type KeyAction = 'change' | 'revoke' | 'block' | 'unblock'

export interface KeyTableProps {
  readonly keys: readonly KeyState[]
  /** Absent for those who may look alone. */
  readonly act?: (deed: KeyAction, key: KeyState) => void
  /** Keys made at run time can be changed. */
  readonly writable: boolean
}

export function KeyTable({ keys, act, writable }: KeyTableProps) {
  const columns = useMemo(() => columnsFor(act, writable), [act, writable])
  return (
    <DataTable label="Keys, with their use in the last 30 days" rows={keys} columns={columns} phone="cards"
      step={STEP}
      id={({ name, state, created_at }) => `${state} ${created_at} ${name}`} />
  )
}

const STATES: Readonly<Record<KeyState['state'], { tone: Tone; word: string }>> = {
  live: { tone: 'good', word: 'Live' },
  blocked: { tone: 'warn', word: 'Blocked' },
  revoked: { tone: 'plain', word: 'Revoked' },
}

function columnsFor(act: KeyTableProps['act'], writable: boolean): readonly Column<KeyState>[] {
  return [...COLUMNS, {
    id: 'actions', title: '', align: 'right', cell: key => <Actions of={key} act={act} writable={writable} />,
  }]
}

const COLUMNS: readonly Column<KeyState>[] = [
  {
    id: 'name', title: 'Name', sort: ({ name }) => name,
    cell: ({ name, origin, place, created_at }) => (
      <span className={classes.name}>
        <span>{name}</span>
        <small className="dim" title={place ?? undefined}>
          {origin === 'config' ? place?.split('/').at(-1) ?? 'gateway.yaml'
            : `made here${created_at === null ? '' : ` on ${dayUtc(created_at)}`}`}
        </small>
      </span>
    ),
  },
  {
    id: 'state', title: 'State', sort: ({ state }) => state,
    cell: ({ state, revoked_at }) => (
      <span title={revoked_at === null ? undefined : `since ${dayUtc(revoked_at)}`}>
        <StatusBadge tone={STATES[state].tone}>{STATES[state].word}</StatusBadge>
      </span>
    ),
  },
  { id: 'models', title: 'Models', long: 'wrap', cell: ({ models }) => <Globs models={models} /> },
  { id: 'limits', title: 'Limits', long: 'wrap', cell: ({ limits }) => <LimitLines limits={limits} /> },
  {
    id: 'used', title: 'Last use', sort: ({ last_used_at }) => last_used_at ?? '',
    cell: ({ last_used_at }) =>
      (last_used_at === null ? <span className="dim">never</span>
      : <Time at={last_used_at} form="relative" />),
  },
  {
    id: 'requests', title: 'Requests, 30 d', align: 'right', sort: ({ figures }) => figures.requests,
    cell: ({ figures }) => count(figures.requests),
  },
  {
    id: 'cost', title: 'Cost, 30 d', align: 'right', sort: ({ figures }) => approximate(figures.cost_usd),
    cell: ({ figures }) => <span title={money(figures.cost_usd)}>{moneyShort(figures.cost_usd)}</span>,
  },
]

function Globs({ models }: { readonly models: readonly string[] | null }) {
  if (models === null) return <span className="dim">all</span>
  if (models.length === 0) return <span className="dim">none</span>
  const unique = [...new Set(models)]
  return <span className={classes.globs}>{unique.map(glob => <code key={glob}>{glob}</code>)}</span>
}

interface ActionsProps extends Pick<KeyTableProps, 'writable'> {
  readonly of: KeyState
  readonly act: KeyTableProps['act']
}

function Actions({ of: key, act, writable }: ActionsProps) {
  const { name, origin, state } = key
  const query = new URLSearchParams({ key: name, range: '30d' })
  const can = act !== undefined && writable
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray"
          aria-label={`Actions for ${name}`}><IconDots size={18} stroke={1.6} /></ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component={Link} href={`/logs?${query}`}
          leftSection={<IconListDetails size={16} stroke={1.6} />}>
          Its requests
        </Menu.Item>
        <Menu.Item component={Link} href={`/billing?${query}`}
          leftSection={<IconChartHistogram size={16} stroke={1.6} />}>
          What it spent
        </Menu.Item>
        {can && state !== 'revoked' && <Menu.Divider />}
        {can && origin === 'store' && state === 'live' && (
          <>
            <Menu.Item leftSection={<IconAdjustments size={16} stroke={1.6} />}
              onClick={() => { act('change', key) }}>
              Change models and limits
            </Menu.Item>
            <Menu.Item leftSection={<IconTrash size={16} stroke={1.6} />} className={classes.danger}
              onClick={() => { act('revoke', key) }}>
              Revoke
            </Menu.Item>
          </>
        )}
        {can && origin === 'config' && state === 'live' && (
          <Menu.Item leftSection={<IconBan size={16} stroke={1.6} />} className={classes.danger}
            onClick={() => { act('block', key) }}>
            Block
          </Menu.Item>
        )}
        {can && state === 'blocked' && (
          <Menu.Item leftSection={<IconLockOpen size={16} stroke={1.6} />}
            onClick={() => { act('unblock', key) }}>
            Unblock
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
