import { ActionIcon, Tooltip } from '@mantine/core'
import { IconBook, IconExternalLink, IconKeyboard, IconLogout, IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useRoute } from 'wouter'
import { Problem } from '../components/problem.tsx'
import { navigationItemsFor } from '../places.ts'
import type { NavigationItem } from '../places.ts'
import type { Session } from '../ask.ts'
import { reachableOrigin } from '../reach.ts'
import { useLogin, useUser } from '../session.ts'
import classes from './navigation.module.css'
import { SchemeSwitch } from './scheme-switch.tsx'

const ROLES = { admin: 'Administrator', viewer: 'Viewer', key: 'Key holder' } as const

export interface NavigationProps {
  readonly session: Session
  /** Opens the search for a request. */
  readonly search: () => void
  /** Opens the list of shortcuts. */
  readonly help: () => void
  /** Called when a page was chosen: the drawer closes. */
  readonly chosen?: () => void
}

/** The pages that the user may see, and what belongs to the session. */
export function Navigation({ session, search, help, chosen }: NavigationProps) {
  const user = useUser()
  const { logout } = useLogin()
  const [problem, setProblem] = useState<Error | null>(null)
  const places = navigationItemsFor(user.role)
  const groups = [...new Set(places.map(({ group }) => group))]
  return (
    <>
      <nav className={classes.nav} aria-label="Pages">
        {groups.map(group => (
          <div key={group}>
            <div id={`nav-${group}`} className={classes.group}>{group}</div>
            <ul aria-labelledby={`nav-${group}`}>
              {places.filter(place => place.group === group).map(place => (
                <li key={place.path}><PlaceLink place={place} chosen={chosen} /></li>
              ))}
            </ul>
          </div>
        ))}
        <Documentation url={session.docs_url} />
      </nav>
      <div className={classes.foot}>
        {problem && <Problem error={problem} />}
        <div className={classes.user}>
          <div className={classes.who}>
            <span title={user.name}>{user.name}</span>
            <small>{ROLES[user.role]}</small>
          </div>
          <Tooltip label="Log out">
            <ActionIcon variant="subtle" color="gray" aria-label="Log out" onClick={() => {
              setProblem(null)
              logout().catch(setProblem)
            }}>
              <IconLogout size={17} stroke={1.6} />
            </ActionIcon>
          </Tooltip>
        </div>
        <div className={classes.tools}>
          <span className={`${classes.version} dim`}>v{session.version}</span>
          <Tooltip label="Find a request ( / )">
            <ActionIcon variant="subtle" color="gray" aria-label="Find a request" onClick={search}>
              <IconSearch size={17} stroke={1.6} />
            </ActionIcon>
          </Tooltip>
          <Tooltip label="Keyboard shortcuts ( ? )">
            <ActionIcon variant="subtle" color="gray" aria-label="Keyboard shortcuts" onClick={help}>
              <IconKeyboard size={17} stroke={1.6} />
            </ActionIcon>
          </Tooltip>
          <SchemeSwitch />
        </div>
      </div>
    </>
  )
}

function PlaceLink({ place, chosen }: { readonly place: NavigationItem; readonly chosen: (() => void) | undefined }) {
  const [isHere] = useRoute(place.path === '/' ? '/' : `${place.path}/*?`)
  const { icon: Icon } = place
  return (
    <Link href={place.path} className={classes.link} aria-current={isHere ? 'page' : undefined}
      onClick={chosen}>
      <Icon size={18} stroke={1.6} aria-hidden />
      {place.title}
    </Link>
  )
}

/** Where it is served, and to be reached from here. */
function Documentation({ url }: { readonly url: string | null }) {
  const href = reachableOrigin(url, window.location)
  if (href === null) return null
  return (
    <div>
      <div id="nav-Learn" className={classes.group}>Learn</div>
      <ul aria-labelledby="nav-Learn">
        <li>
          <a href={`${href}/`} target="_blank" rel="noreferrer" className={classes.link}>
            <IconBook size={18} stroke={1.6} aria-hidden />
            Documentation
            <IconExternalLink size={14} stroke={1.6} className={classes.leaves} aria-label="in a new tab" />
          </a>
        </li>
      </ul>
    </div>
  )
}
