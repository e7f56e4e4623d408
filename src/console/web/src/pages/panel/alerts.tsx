import { IconAlertTriangle, IconExclamationCircle } from '@tabler/icons-react'
import { Link } from 'wouter'
import type { ResponseOf } from '../../api.ts'
import { Prose } from '../../components/prose.tsx'
import { useShowMore } from '../../components/show-more.tsx'
import { Time } from '../../components/time.tsx'
import tones from '../../components/tones.module.css'
import { clockUtc } from '../../format.ts'
import { navigationItemsFor } from '../../navigation-items.ts'
import { useUser } from '../../session.ts'
import { useNow } from '../../use-now.ts'
import classes from './alerts.module.css'

type Alert = ResponseOf<'GET /live'>['concerns'][number]

/** Alerts shown at first. Clients can cause one alert per model name that they invent. */
const STEP = 12

/** Pages to fix or inspect each kind of alert. The link goes to the first one that the user may see. */
const LINKS: Readonly<Record<Alert['kind'], readonly { path: string; text: string }[]>> = {
  unpriced_model: [{ path: '/models', text: 'Models and prices' }],
  upstream_key_rejected: [{ path: '/configuration', text: 'Configuration' }],
  circuit_open: [{ path: '/routes', text: 'Routes' }],
  reload_failed: [{ path: '/configuration', text: 'Configuration' }],
  restart_needed: [{ path: '/configuration', text: 'Configuration' }],
  ledger: [{ path: '/configuration', text: 'Configuration' }],
  budget: [{ path: '/own', text: 'My key' }, { path: '/billing', text: 'Budgets' }],
  cluster: [],
  no_keys: [{ path: '/keys', text: 'Keys' }],
  key_store: [{ path: '/keys', text: 'Keys' }],
  certificate: [{ path: '/configuration', text: 'Configuration' }],
}

const TONES: Readonly<Record<Alert['severity'], 'bad' | 'warn'>> = { error: 'bad', warning: 'warn' }

/** Current alerts, errors first. Nothing if there are none. */
export function Alerts({ alerts }: { readonly alerts: readonly Alert[] }) {
  const { role } = useUser()
  const now = useNow(60_000)
  const [shown, more] = useShowMore(alerts, STEP)
  if (alerts.length === 0) return null
  const visiblePaths = new Set(navigationItemsFor(role).map(({ path }) => path))
  return (
    <section aria-labelledby="alerts">
      <h2 id="alerts" className="unseen">Alerts</h2>
      <ul className={classes.list}>
        {shown.map(({ kind, severity, subject, message, since }) => {
          const Icon = severity === 'error' ? IconExclamationCircle : IconAlertTriangle
          const link = LINKS[kind].find(({ path }) => visiblePaths.has(path))
          return (
            <li key={`${kind} ${subject} ${message}`} className={`${classes.alert} ${tones[TONES[severity]]}`}>
              <Icon size={18} stroke={1.8} aria-label={severity} />
              <div>
                <p><Prose text={message} /></p>
                {since !== null && (
                  <small>since {clockUtc(since, now)} (<Time at={since} form="relative" />)</small>
                )}
              </div>
              {link && <Link href={link.path} className={classes.link}>{link.text}</Link>}
            </li>
          )
        })}
      </ul>
      {more}
    </section>
  )
}
