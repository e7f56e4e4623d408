import { Type, type Static } from 'typebox'
import { StrictObject, Timestamp, Name, Nullable, ROLES, StringEnum } from './shapes.ts'

export const Session = StrictObject({
  version: Type.String({ description: 'Version of the gateway' }),
  has_users: Type.Boolean({ description: 'Whether console.users has a user' }),
  single_sign_on: Nullable(Type.String({ description: 'The host of the identity provider; null = single sign-on is not configured' })),
  user: Nullable(StrictObject({
    name: Name, role: StringEnum(ROLES), expires_at: Timestamp,
    has_users: Type.Boolean({ description: 'Whether attribution of the configuration reads the end user' }),
    tags: Type.Array(Name, { description: 'The tags that attribution of the configuration reads' }),
  })),
  docs_url: Nullable(Type.String({ description: 'The address of the documentation, as configured: `http://0.0.0.0:8082`' })),
  csrf: Nullable(Type.String({ description: 'Send it as x-csrf-token with every request that changes something' })),
})
export type Session = Static<typeof Session>

export const Login = Type.Union([
  StrictObject({ name: Name, password: Type.String({ maxLength: 1024 }) }),
  StrictObject({ key: Type.String({ maxLength: 1024 }) }),
])
export type Login = Static<typeof Login>

export const SingleSignOn = StrictObject({
  return_to: Type.String({ maxLength: 4096, description: 'The page to show after the login: a path that begins with /console/' }),
})

export const Redirect = StrictObject({ url: Type.String({ description: 'Where the browser goes on' }) })

export const Logout = StrictObject({
  url: Nullable(Type.String({ description: 'Where the browser goes to log out of the identity provider too' })),
})
