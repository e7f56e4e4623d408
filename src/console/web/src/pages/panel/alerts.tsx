import { Button } from '@mantine/core'
import { IconAlertTriangle, IconExclamationCircle } from '@tabler/icons-react'
import { useId, useState } from 'react'
import { Link } from 'wouter'
import { Prose } from '../../components/page/prose.tsx'
import { useShowMore } from '../../components/page/show-more.tsx'
import { Time } from '../../components/time.tsx'
import tones from '../../components/tones.module.css'
import { clockUtc, counted } from '../../format.ts'
import { navigationItemsFor } from '../../navigation-items.ts'
import { useUser } from '../../session.ts'
import { useNow } from '../../use-now.ts'
import { groupText, groupsOf, lineLinkOf, linksOf, type Alert, type AlertGroup } from './alert-groups.ts'
import classes from './alerts.module.css'
import { useMuted } from './use-muted.ts'

/** Number of alerts that are shown at first in a group. Clients can cause one alert for each name of a model that they invent. */
const STEP = 12

const TONES: Readonly<Record<Alert['severity'], 'bad' | 'warn'>> = { error: 'bad', warning: 'warn' }

/** The current alerts by kind, errors first. Each kind shows its start, its number of alerts, links, and a button that mutes the alerts. */
export function Alerts({ alerts }: { readonly alerts: readonly Alert[] }) {
  const now = useNow(60_000)
  const { isMuted, mute, unmuteAll } = useMuted(now)
  const groups = groupsOf(alerts.filter(alert => !isMuted(alert)))
  const muted = alerts.filter(isMuted).length
  if (alerts.length === 0) return null
  return (
    <section aria-labelledby="alerts">
      <h2 id="alerts" className="unseen">Alerts</h2>
      <ul className={classes.list}>
        {groups.map(group => (
          <GroupItem key={`${group.severity} ${group.kind}`} group={group} now={now} mute={() => { mute(group.alerts) }} />
        ))}
      </ul>
      {muted > 0 && (
        <p className={classes.muted}>
          {counted(muted, 'alert')} muted in this browser
          <Button variant="subtle" size="compact-xs" onClick={unmuteAll}>Show</Button>
        </p>
      )}
    </section>
  )
}

interface GroupItemProps {
  readonly group: AlertGroup
  readonly now: number
  readonly mute: () => void
}

function GroupItem({ group, now, mute }: GroupItemProps) {
  const { role } = useUser()
  const [isOpen, setOpen] = useState(false)
  const listId = useId()
  const { severity, alerts, since } = group
  const isSingle = alerts.length === 1
  const visiblePaths = new Set(navigationItemsFor(role).map(({ path }) => path))
  const links = linksOf(group, href => visiblePaths.has(`/${href.split(/[/?]/)[1]}`))
  const Icon = severity === 'error' ? IconExclamationCircle : IconAlertTriangle
  const text = isSingle ? alerts[0]?.message ?? '' : groupText(group)
  return (
    <li className={`${classes.alert} ${tones[TONES[severity]]}`}>
      <Icon size={18} stroke={1.8} aria-label={severity} />
      <div>
        <p><Prose text={text} /></p>
        {since !== null && (
          <small>since {clockUtc(since, now)} (<Time at={since} form="relative" />)</small>
        )}
      </div>
      <div className={classes.actions}>
        {!isSingle && (
          <Button variant="subtle" size="compact-sm" aria-expanded={isOpen} aria-controls={listId}
            onClick={() => { setOpen(!isOpen) }}>
            {isOpen ? 'Hide' : 'Show all'}<span className="unseen"> {groupText(group)}</span>
          </Button>
        )}
        {links.map(({ href, text: label }) => <Link key={href} href={href} className={classes.link}>{label}</Link>)}
        <Button variant="subtle" color="gray" size="compact-sm" title="For 24 hours, in this browser" onClick={mute}>
          Mute<span className="unseen"> {text}</span>
        </Button>
      </div>
      {isOpen && <div id={listId} className={classes.all}><AllOf alerts={alerts} /></div>}
    </li>
  )
}

function AllOf({ alerts }: { readonly alerts: readonly Alert[] }) {
  const [shown, more] = useShowMore(alerts, STEP)
  return (
    <>
      <ul>
        {shown.map(alert => {
          const { id, message, since } = alert
          const line = lineLinkOf(alert)
          return (
            <li key={id}>
              <Prose text={message} />{since !== null && <>, <Time at={since} form="relative" /></>}
              {line !== null && <> <Link href={line.href} className={classes.link}>{line.text}</Link></>}
            </li>
          )
        })}
      </ul>
      {more}
    </>
  )
}
