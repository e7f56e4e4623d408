import {
  IconBox, IconChartHistogram, IconGauge, IconHistory, IconKey,
  IconListDetails, IconReceipt, IconRoute, IconServer, IconSettings,
  IconTerminal2, IconUserCircle,
} from '@tabler/icons-react'
import type { Icon } from '@tabler/icons-react'
import type { User } from './session.ts'

export interface NavigationItem {
  /** The path after `/console`. */
  readonly path: string
  readonly title: string
  readonly icon: Icon
  /** The second key of the keyboard shortcut: `g`, and then this letter. */
  readonly letter: string
  readonly group: 'Monitor' | 'Manage' | 'Test'
  readonly roles: readonly User['role'][]
}

const ALL: NavigationItem['roles'] = ['admin', 'viewer', 'key']
const READERS: NavigationItem['roles'] = ['admin', 'viewer']

const NAVIGATION_ITEMS: readonly NavigationItem[] = [
  { path: '/', title: 'Panel', icon: IconGauge, letter: 'p', group: 'Monitor', roles: ALL },
  { path: '/billing', title: 'Billing', icon: IconChartHistogram, letter: 'b', group: 'Monitor', roles: ALL },
  { path: '/statement', title: 'Statement', icon: IconReceipt, letter: 's', group: 'Monitor', roles: ALL },
  { path: '/logs', title: 'Logs', icon: IconListDetails, letter: 'l', group: 'Monitor', roles: ALL },
  { path: '/upstreams', title: 'Upstreams', icon: IconServer, letter: 'u', group: 'Monitor', roles: READERS },
  { path: '/own', title: 'My key', icon: IconUserCircle, letter: 'k', group: 'Monitor', roles: ['key'] },
  { path: '/keys', title: 'Keys', icon: IconKey, letter: 'k', group: 'Manage', roles: READERS },
  { path: '/models', title: 'Models', icon: IconBox, letter: 'm', group: 'Manage', roles: ALL },
  { path: '/routes', title: 'Routes', icon: IconRoute, letter: 'r', group: 'Manage', roles: READERS },
  {
    path: '/configuration', title: 'Configuration',
    icon: IconSettings, letter: 'c', group: 'Manage', roles: READERS,
  },
  { path: '/audit', title: 'Audit log', icon: IconHistory, letter: 'a', group: 'Manage', roles: READERS },
  { path: '/playground', title: 'Playground', icon: IconTerminal2, letter: 'y', group: 'Test', roles: ALL },
]

/** The pages that a role sees. */
export function navigationItemsFor(role: User['role']): readonly NavigationItem[] {
  return NAVIGATION_ITEMS.filter(({ roles }) => roles.includes(role))
}
