import { Suspense, type ComponentType } from 'react'
import { Route, Router, Switch } from 'wouter'
import { useSession } from './api-hooks.ts'
import { ErrorBoundary } from './components/page/error-boundary.tsx'
import { LoadError, Loading } from './components/page/states.tsx'
import { lazyPage } from './lazy-page.ts'
import { navigationItemsFor } from './navigation-items.ts'
import { Login } from './pages/login.tsx'
import { NotFoundPage } from './pages/not-found.tsx'
import { UserContext, type User } from './session.ts'
import { Shell } from './shell/shell.tsx'

const PAGES: readonly { path: string; page: ComponentType }[] = [
  { path: '/', page: lazyPage(() => import('./pages/panel.tsx')) },
  { path: '/billing', page: lazyPage(() => import('./pages/billing.tsx')) },
  { path: '/upstreams', page: lazyPage(() => import('./pages/upstreams.tsx')) },
  { path: '/upstreams/:name', page: lazyPage(() => import('./pages/upstream.tsx')) },
  { path: '/statement', page: lazyPage(() => import('./pages/statement.tsx')) },
  { path: '/own', page: lazyPage(() => import('./pages/my-key.tsx')) },
  { path: '/logs', page: lazyPage(() => import('./pages/logs.tsx')) },
  { path: '/logs/:id', page: lazyPage(() => import('./pages/request.tsx')) },
  { path: '/keys', page: lazyPage(() => import('./pages/keys.tsx')) },
  { path: '/audit', page: lazyPage(() => import('./pages/audit.tsx')) },
  { path: '/models', page: lazyPage(() => import('./pages/models.tsx')) },
  { path: '/routes', page: lazyPage(() => import('./pages/routes.tsx')) },
  { path: '/configuration', page: lazyPage(() => import('./pages/configuration.tsx')) },
  { path: '/playground', page: lazyPage(() => import('./pages/playground.tsx')) },
]

/** The login page, or the page for the current URL inside the shell. */
export function App() {
  const session = useSession()
  if (session.data === undefined) {
    return session.isError ? <LoadError error={session.error} retry={() => { void session.refetch() }} /> : null
  }
  const { user } = session.data
  if (user === null) return <Login session={session.data} />
  return (
    <Router base="/console">
      <UserContext value={user}>
        <Shell key={`${user.role} ${user.name}`} session={session.data}>
          <Pages user={user} />
        </Shell>
      </UserContext>
    </Router>
  )
}

function Pages({ user }: { readonly user: User }) {
  return (
    <Switch>
      {PAGES.filter(({ path }) => isVisible(user, path)).map(({ path, page: Content }) => (
        <Route key={path} path={path}>
          <ErrorBoundary key={path}>
            <Suspense fallback={<Loading height={320} />}><Content /></Suspense>
          </ErrorBoundary>
        </Route>
      ))}
      <Route><NotFoundPage /></Route>
    </Switch>
  )
}

/** Tells whether the user may see a page. A subpage is visible to the roles that see the navigation item of its section. */
function isVisible({ role }: User, path: string): boolean {
  const section = `/${path.split('/')[1]}`
  return navigationItemsFor(role).some(item => item.path === section)
}
