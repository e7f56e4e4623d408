import { IconAlertTriangle, IconExclamationCircle } from '@tabler/icons-react'
import { Link } from 'wouter'
import type { ResponseOf } from '../../api.ts'
import { Prose } from '../../components/prose.tsx'
import { Time } from '../../components/time.tsx'
import tones from '../../components/tones.module.css'
import { useShowMore } from '../../components/use-some.tsx'
import { navigationItemsFor } from '../../places.ts'
import { useUser } from '../../session.ts'
import classes from './concerns.module.css'

type Concern = ResponseOf<'GET /live'>['concerns'][number]

/** As many are shown at first: clients can make one of every name that they invent for a model. */
const STEP = 12

/** Where each kind is mended or looked into. The first that the user may see. */
const PLACES: Readonly<Record<Concern['kind'], readonly { path: string; text: string }[]>> = {
  unpriced_model: [{ path: '/models', text: 'Models and prices' }],
  upstream_key_rejected: [{ path: '/configuration', text: 'Configuration' }],
  circuit_open: [{ path: '/routes', text: 'Routes' }],
  reload_failed: [{ path: '/configuration', text: 'Configuration' }],
  restart_needed: [{ path: '/configuration', text: 'Configuration' }],
  ledger: [{ path: '/configuration', text: 'Configuration' }],
  budget: [{ path: '/own', text: 'My key' }, { path: '/billing', text: 'Budgets' }],
  no_keys: [{ path: '/keys', text: 'Keys' }],
  key_store: [{ path: '/keys', text: 'Keys' }],
  certificate: [{ path: '/configuration', text: 'Configuration' }],
}

const TONES: Readonly<Record<Concern['severity'], 'bad' | 'warn'>> = { error: 'bad', warning: 'warn' }

/** What somebody should look at, the worst first. Nothing where all is well. */
export function Alerts({ concerns }: { readonly concerns: readonly Concern[] }) {
  const { role } = useUser()
  const [shown, more] = useShowMore(concerns, STEP)
  if (concerns.length === 0) return null
  const seen = navigationItemsFor(role)
  return (
    <section aria-labelledby="concerns">
      <h2 id="concerns" className="unseen">Needs attention</h2>
      <ul className={classes.list}>
        {shown.map(concern => {
          const Icon = concern.severity === 'error' ? IconExclamationCircle : IconAlertTriangle
          const place = PLACES[concern.kind].find(({ path }) => seen.some(each => each.path === path))
          return (
            <li key={`${concern.kind} ${concern.subject} ${concern.message}`}
              className={`${classes.concern} ${tones[TONES[concern.severity]]}`}>
              <Icon size={18} stroke={1.8} aria-label={concern.severity} />
              <div>
                <p><Prose text={concern.message} /></p>
                {concern.since !== null && <small>since <Time at={concern.since} form="relative" /></small>}
              </div>
              {place && <Link href={place.path} className={classes.link}>{place.text}</Link>}
            </li>
          )
        })}
      </ul>
      {more}
    </section>
  )
}
