import { scryptSync } from 'node:crypto'
import { formatPasswordHash } from '../../src/base/secrets/password.ts'

const NAME = 'ops'
export const PASSWORD = 'correct horse battery staple'

/** The cheapest password hash that the configuration accepts. */
export function cheapHash(password: string): string {
  const cost = { N: 16_384, r: 8, p: 1 }
  const salt = Buffer.alloc(16, password)
  return formatPasswordHash({ cost, salt, hash: scryptSync(password, salt, 32, cost) })
}

/** A console with one user, for tests that read the status as an administrator. */
export const CONSOLE = `console:
  listen: 127.0.0.1:0
  users: [{ name: ${NAME}, password: "${cheapHash(PASSWORD)}", role: admin }]`

export interface OperatorStatus {
  readonly running: number
  readonly upstreams: readonly { readonly upstream: string, readonly in_flight: number, readonly circuit: string }[]
}

/** Logs in to a gateway with CONSOLE. @returns a function that gets a path of the console as that user */
export async function consoleUser(console: string | null): Promise<(path: string) => Promise<Response>> {
  const login = await fetch(`${console}/console/api/session`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: NAME, password: PASSWORD }),
  })
  const [cookie = ''] = (login.headers.getSetCookie()[0] ?? '').split(';')
  return path => fetch(`${console}${path}`, { headers: { cookie } })
}

/** Logs in to a gateway with CONSOLE. @returns a function that gets the status as that user */
export async function operatorOf(console: string | null): Promise<() => Promise<OperatorStatus>> {
  const get = await consoleUser(console)
  return async () => await (await get('/api/status')).json() as OperatorStatus
}
