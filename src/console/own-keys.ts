import { hash, randomBytes } from 'node:crypto'
import { MAX_KEY_LIFETIME } from '../auth/callers/caller-keys.ts'
import type { KeyRecord } from '../auth/key-record.ts'
import { isoTime } from '../base/clock.ts'
import { generateKey } from '../base/secrets/key-format.ts'
import { PREFIX_LENGTH } from '../config/sections/keys.ts'
import { requireSession, type Context, type Operations, type OperationRequest } from './context.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { actorOf, checkChangeResult } from './key-changes.ts'
import { checkModels, checkName, expiryOf } from './key-input.ts'
import type { ConsoleCaller } from './login/console-caller.ts'
import { isoTimeOrNull } from './state/texts.ts'
import { ConsoleStoreError } from './store/console-store-client.ts'

type OwnKeyOperations = Pick<Operations, 'GET /own/keys' | 'POST /own/keys' | 'DELETE /own/keys/:label'>
type Asked = Pick<OperationRequest<'GET /own/keys'>, 'session'>

const DAY_MS = 86_400_000
/** Keys that a caller can make in a day, for each one that it may have: revoked ones stay in the store. */
const PER_DAY = 10
/** The longest name of a key that the API takes. */
const MAX_NAME_LENGTH = 256

/** Keys that callers make for themselves. They act under the name, the limits and the group of the caller. */
export function ownKeyOperations({ host, clock, store }: Context): OwnKeyOperations {
  const keysOf = async (caller: string): Promise<KeyRecord[]> =>
    (await store.call('storedKeys')).keys.filter(({ key, revokedAt }) => key.caller === caller && revokedAt === null)

  return {
    'GET /own/keys': async asked => {
      const caller = requireSession(asked).caller
      const keys = caller === null ? [] : await keysOf(caller.login.name)
      return {
        allowed: caller === null || host.current().keyStore === null ? 0 : caller.issuer.keys,
        max_days: MAX_KEY_LIFETIME / DAY_MS,
        keys: keys.map(({ key, createdAt }) => ({
          label: key.name.slice(prefixOf(caller as ConsoleCaller).length), prefix: key.prefix ?? null, models: key.models && [...key.models],
          created_at: isoTime(createdAt), expires_at: isoTimeOrNull(key.expiresAt ?? null),
          expired: key.expiresAt !== undefined && key.expiresAt <= clock.wall(),
        })),
      }
    },

    'POST /own/keys': async asked => {
      const { login: { name: caller, group }, issuer } = callerOf(asked)
      const { label, models, expires_at: expires } = asked.body
      if (issuer.keys === 0 || host.current().keyStore === null) throw new ConsoleProblem('forbidden', 'You cannot make keys here. Ask the operator.')
      const now = clock.wall()
      const expiresAt = expiryOf(expires, now)
      if (expiresAt > now + MAX_KEY_LIFETIME + DAY_MS) {
        throw new ConsoleProblem('bad_request', `expires_at must be within ${MAX_KEY_LIFETIME / DAY_MS} days.`, { field: 'expires_at' })
      }
      const name = `${caller}/${checkName(label)}`
      if (name.length > MAX_NAME_LENGTH) throw new ConsoleProblem('bad_request', 'label is too long behind your name.', { field: 'label' })
      const made = generateKey(randomBytes)
      const key = {
        name, caller, digest: hash('sha256', made, 'buffer'), prefix: made.slice(0, PREFIX_LENGTH),
        models: models === undefined ? null : checkModels(models), limits: null, expiresAt, ...group !== null && { group },
      }
      try {
        await store.call('createKey', key, now, actorOf(asked), { live: issuer.keys, perDay: issuer.keys * PER_DAY })
      } catch (error) {
        throw error instanceof ConsoleStoreError ? refusalOf(error, issuer.keys) : error
      }
      return { name, key: made }
    },

    'DELETE /own/keys/:label': async asked => {
      const caller = callerOf(asked)
      const name = prefixOf(caller) + asked.params.label
      const isOwn = (await keysOf(caller.login.name)).some(({ key }) => key.name === name)
      if (!isOwn) throw new ConsoleProblem('not_found', 'You have no key with this label.')
      checkChangeResult(await store.call('revokeKey', name, clock.wall(), actorOf(asked)), name)
      return null
    },
  }
}

function prefixOf({ login }: ConsoleCaller): string {
  return `${login.name}/`
}

/** @throws ConsoleProblem for the holder of a key: otherwise a stolen key could make others */
function callerOf(asked: Asked): ConsoleCaller {
  const { caller } = requireSession(asked)
  if (caller !== null) return caller
  throw new ConsoleProblem('forbidden', 'Only callers who log in by single sign-on have keys of their own.')
}

function refusalOf(error: ConsoleStoreError, allowed: number): Error {
  switch (error.code) {
    case 'taken': return new ConsoleProblem('conflict', 'You have a key with this label.', { field: 'label' })
    case 'full': return new ConsoleProblem('conflict', `You have ${allowed} keys, and may not have more. Revoke one first.`)
    case 'often': return new ConsoleProblem('too_many', 'You have made too many keys today. Try again tomorrow.')
    default: return error
  }
}
