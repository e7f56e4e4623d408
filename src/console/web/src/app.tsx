import { Suspense, lazy } from 'react'
import type { ComponentType } from 'react'
import { Redirect, Route, Router, Switch } from 'wouter'
import { useSession } from './api-hooks.ts'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { LoadError, Loading } from './components/states.tsx'
import { Login } from './pages/login.tsx'
import { navigationItemsFor } from './navigation-items.ts'
import { UserContext } from './session.ts'
import type { User } from './session.ts'
import { Shell } from './shell/shell.tsx'

/** Each page is a separate chunk, loaded on the first visit. */
const PAGES: readonly { path: string; page: ComponentType }[] = [
  { path: '/', page: lazy(() => import('./pages/panel.tsx')) },
  { path: '/billing', page: lazy(() => import('./pages/billing.tsx')) },
  { path: '/statement', page: lazy(() => import('./pages/statement.tsx')) },
  { path: '/own', page: lazy(() => import('./pages/my-key.tsx')) },
  { path: '/logs', page: lazy(() => import('./pages/logs.tsx')) },
  { path: '/logs/:id', page: lazy(() => import('./pages/request.tsx')) },
  { path: '/keys', page: lazy(() => import('./pages/keys.tsx')) },
  { path: '/audit', page: lazy(() => import('./pages/audit.tsx')) },
  { path: '/models', page: lazy(() => import('./pages/models.tsx')) },
  { path: '/routes', page: lazy(() => import('./pages/routes.tsx')) },
  { path: '/configuration', page: lazy(() => import('./pages/configuration.tsx')) },
  { path: '/playground', page: lazy(() => import('./pages/playground.tsx')) },
]

/** The login page, or the shell with the page for the current address. */
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
      <Route><Redirect to="/" replace /></Route>
    </Switch>
  )
}

/** A subpage is visible to the roles that see its navigation item. */
function isVisible({ role }: User, path: string): boolean {
  const section = `/${path.split('/')[1]}`
  return navigationItemsFor(role).some(item => item.path === section)
}
