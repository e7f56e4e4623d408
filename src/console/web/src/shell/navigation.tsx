import { ActionIcon, Tooltip } from '@mantine/core'
import { IconBook, IconExternalLink, IconKeyboard, IconLogout, IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useRoute } from 'wouter'
import { Problem } from '../components/page/problem.tsx'
import { navigationItemsFor, type NavigationItem } from '../navigation-items.ts'
import type { Session } from '../api-hooks.ts'
import { reachableOrigin } from '../reachable-origin.ts'
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
  /** Called when the user selects a page, to close the drawer. */
  readonly onSelect?: () => void
}

/** Links to the pages that the user may see, the user's name, and tools. */
export function Navigation({ session, search, help, onSelect }: NavigationProps) {
  const user = useUser()
  const { logout } = useLogin()
  const [problem, setProblem] = useState<Error | null>(null)
  const items = navigationItemsFor(user.role)
  const groups = [...new Set(items.map(({ group }) => group))]
  return (
    <>
      <nav className={classes.nav} aria-label="Pages">
        {groups.map(group => (
          <div key={group}>
            <div id={`nav-${group}`} className={classes.group}>{group}</div>
            <ul aria-labelledby={`nav-${group}`}>
              {items.filter(item => item.group === group).map(item => (
                <li key={item.path}><PageLink item={item} onSelect={onSelect} /></li>
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

function PageLink(
  { item, onSelect }: { readonly item: NavigationItem; readonly onSelect: (() => void) | undefined },
) {
  const [isCurrent] = useRoute(item.path === '/' ? '/' : `${item.path}/*?`)
  const { icon: Icon } = item
  return (
    <Link href={item.path} className={classes.link} aria-current={isCurrent ? 'page' : undefined}
      onClick={onSelect}>
      <Icon size={18} stroke={1.6} aria-hidden />
      {item.title}
    </Link>
  )
}

/** Link to the documentation. Shown only if the documentation is served, and this browser can reach it. */
function Documentation({ url }: { readonly url: string | null }) {
  const href = reachableOrigin(url, window.location)
  if (href === null) return null
  return (
    <div>
      <div id="nav-Help" className={classes.group}>Help</div>
      <ul aria-labelledby="nav-Help">
        <li>
          <a href={`${href}/`} target="_blank" rel="noreferrer" className={classes.link}>
            <IconBook size={18} stroke={1.6} aria-hidden />
            Documentation
            <IconExternalLink size={14} stroke={1.6} className={classes.external}
              aria-label="opens in a new tab" />
          </a>
        </li>
      </ul>
    </div>
  )
}
