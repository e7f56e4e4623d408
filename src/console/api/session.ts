import { Type } from 'typebox'
import type { Static } from 'typebox'
import { Closed, Moment, Name, Nullable, ROLES, Word } from './shapes.ts'

export const Session = Closed({
  version: Type.String({ description: "The gateway's" }),
  has_users: Type.Boolean({ description: 'Whether console.users names anybody' }),
  user: Nullable(Closed({
    name: Name,
    role: Word(ROLES),
    expires_at: Moment,
  })),
  docs_url: Nullable(Type.String({
    description: 'Where the documentation is served, as far as the configuration ' +
      'tells: `http://0.0.0.0:8082`',
  })),
  csrf: Nullable(Type.String({
    description: 'To be sent as x-csrf-token with every request that changes something',
  })),
})
export type Session = Static<typeof Session>

/** By name and password, or by an API key. */
export const Login = Type.Union([
  Closed({ name: Name, password: Type.String({ maxLength: 1024 }) }),
  Closed({ key: Type.String({ maxLength: 1024 }) }),
])
export type Login = Static<typeof Login>
