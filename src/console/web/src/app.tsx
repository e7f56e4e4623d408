import { Suspense, lazy } from 'react'
import type { ComponentType } from 'react'
import { Redirect, Route, Router, Switch } from 'wouter'
import { useSession } from './ask.ts'
import { Boundary } from './components/boundary.tsx'
import { Failure, Loading } from './components/states.tsx'
import { Login } from './pages/login.tsx'
import { navigationItemsFor } from './places.ts'
import { UserContext } from './session.ts'
import type { User } from './session.ts'
import { Shell } from './shell/shell.tsx'

/** Each page is in a file of its own, read when it is gone to. */
const PAGES: readonly { path: string; page: ComponentType }[] = [
  { path: '/', page: lazy(() => import('./pages/panel.tsx')) },
  { path: '/billing', page: lazy(() => import('./pages/billing.tsx')) },
  { path: '/statement', page: lazy(() => import('./pages/statement.tsx')) },
  { path: '/own', page: lazy(() => import('./pages/own.tsx')) },
  { path: '/logs', page: lazy(() => import('./pages/logs.tsx')) },
  { path: '/logs/:id', page: lazy(() => import('./pages/story.tsx')) },
  { path: '/keys', page: lazy(() => import('./pages/keys.tsx')) },
  { path: '/audit', page: lazy(() => import('./pages/audit.tsx')) },
  { path: '/models', page: lazy(() => import('./pages/models.tsx')) },
  { path: '/routes', page: lazy(() => import('./pages/routes.tsx')) },
  { path: '/configuration', page: lazy(() => import('./pages/configuration.tsx')) },
  { path: '/playground', page: lazy(() => import('./pages/playground.tsx')) },
]

/** The whole console: the login, or the shell with the page that the address names. */
export function App() {
  const session = useSession()
  if (session.data === undefined) {
    return session.isError ? <Failure error={session.error} retry={() => { void session.refetch() }} /> : null
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
      {PAGES.filter(({ path }) => isFor(user, path)).map(({ path, page: Content }) => (
        <Route key={path} path={path}>
          <Boundary key={path}>
            <Suspense fallback={<Loading height={320} />}><Content /></Suspense>
          </Boundary>
        </Route>
      ))}
      <Route><Redirect to="/" replace /></Route>
    </Switch>
  )
}

/** What is below a place is for those that the place is for. */
function isFor({ role }: User, path: string): boolean {
  const place = `/${path.split('/')[1]}`
  return navigationItemsFor(role).some(each => each.path === place)
}
