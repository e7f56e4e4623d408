import { useQueryClient } from '@tanstack/react-query'
import { createContext, use, useCallback } from 'react'
import { send, type BodyOf } from './api.ts'
import { SESSION, endSession, clearCachedResponses, notifyOtherTabs, type Session } from './api-hooks.ts'

export type User = NonNullable<Session['user']>

export const UserContext = createContext<User | null>(null)

/** The user who is logged in. Must be called only in components inside the shell. */
export function useUser(): User {
  const user = use(UserContext)
  if (user === null) throw new Error('useUser outside of the shell')
  return user
}

/**
 * Functions for login and logout. Both remove the cached responses of the previous user. A logout may end with a redirect to the identity
 * provider.
 */
export function useLogin(): {
  login: (body: BodyOf<'POST /session'>) => Promise<void>
  logout: () => Promise<void>
} {
  const client = useQueryClient()
  const login = useCallback(async (body: BodyOf<'POST /session'>) => {
    const before = client.getQueryData<Session>(SESSION)
    const session = await send('POST /session', { body }, { csrf: before?.csrf ?? null })
    clearCachedResponses(client)
    client.setQueryData(SESSION, session)
    notifyOtherTabs()
  }, [client])
  const logout = useCallback(async () => {
    const session = client.getQueryData<Session>(SESSION)
    const { url } = await send('POST /session/logout', {}, { csrf: session?.csrf ?? null })
    clearCachedResponses(client)
    endSession(client)
    notifyOtherTabs()
    if (url !== null) window.location.assign(url)
  }, [client])
  return { login, logout }
}
