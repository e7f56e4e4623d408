import { hash, randomBytes } from 'node:crypto'
import type { Actor } from '../../auth/audit.ts'
import { generate } from '../../base/key-format.ts'
import type { Key, Limits } from '../../config/types.ts'
import { limitsText, modelsText } from '../../gateway/key-texts.ts'
import { plan } from '../../limits/effective-limits.ts'
import { ANONYMOUS_KEY } from '../../context/accounts.ts'
import type { KeyState, Limits as PlainLimits } from '../api/keys.ts'
import { sessionIn } from '../context.ts'
import type { Asked, Context, Operations } from '../context.ts'
import { checkModels, checkName, limitsOf, plainOf } from '../limits.ts'
import { NO_FIGURES } from '../no-figures.ts'
import { ConsoleProblem } from '../problem.ts'
import type { KeyUse } from '../reports/reports.ts'
import type { Changed } from '../store/console-store.ts'
import { DeskError } from '../store/console-store-client.ts'
import { isoTime, isoTimeOrNull } from '../texts.ts'

type KeyOperations = Pick<
  Operations,
  'GET /own' | 'GET /keys' | 'POST /keys' | 'PATCH /keys/:name' | 'DELETE /keys/:name'
  | 'POST /keys/:name/unblock' | 'POST /keys/find' | 'GET /audit'
>

const NO_LEDGER = 'The configuration names no ledger, beside which keys are kept'
const AUDIT_PAGE = 100

/** Keys: those of gateway.yaml, which can be shut out here, and those that are made here. */
export function keyOperations({ host, clock, desk, reports }: Context): KeyOperations {
  const configured = (name: string): Key | undefined => host.current().config.keys.find(
    key => key.name === name,
  )
  const writable = (): void => {
    if (host.current().keyStore === null) {
      throw new ConsoleProblem('conflict', `${NO_LEDGER}: set ledger.file`)
    }
  }

  return {
    'GET /own': async asked => {
      const { name, identity } = sessionIn(asked)
      const { accounts, config } = host.current()
      const key = identity?.key ?? ANONYMOUS_KEY
      const figures = accounts.limiter.figures(key, null)
      const rate = (rate: typeof figures.requests) =>
        rate
          && { limit: rate.limit, remaining: Math.max(0, Math.floor(rate.remaining)), reset_ms: rate.resetMs }
      return {
        name,
        models: identity?.key?.models ? [...identity.key.models] : null,
        limits: inForce(identity?.key?.limits ?? null, config.limits),
        requests: rate(figures.requests),
        tokens: rate(figures.tokens),
      }
    },

    'GET /keys': async () => {
      const { config, keyStore } = host.current()
      const hasLedger = keyStore !== null
      const [{ keys, blocks }, use] = await Promise.all([
        desk.ask('storedKeys'),
        hasLedger ? reports.keyUse() : new Map<string, KeyUse>(),
      ])
      const blocked = new Set(blocks.map(({ digest }) => Buffer.from(digest).toString('hex')))
      const stateOf = (
        key: Key, origin: KeyState['origin'], createdAt: number | null, revokedAt: number | null,
      ) => {
        const used = use.get(key.name)
        const isBlocked = blocked.has(Buffer.from(key.digest).toString('hex'))
        return {
          name: key.name,
          origin,
          place: key.line === undefined ? null : `${config.file}:${key.line}`,
          state: revokedAt !== null ? 'revoked' : isBlocked ? 'blocked' : 'live',
          models: key.models && [...key.models],
          limits: plainOf(key.limits),
          created_at: isoTimeOrNull(createdAt),
          revoked_at: isoTimeOrNull(revokedAt),
          last_used_at: used?.last_used_at ?? null,
          figures: used?.figures ?? NO_FIGURES,
        } satisfies KeyState
      }
      return {
        store: { writable: hasLedger, reason: hasLedger ? null : NO_LEDGER },
        default_limits: plainOf(config.limits),
        keys: [
          ...config.keys.map(key => stateOf(key, 'config', null, null)),
          ...keys.map(({ key, createdAt, revokedAt }) => stateOf(key, 'store', createdAt, revokedAt)),
        ],
      }
    },

    'POST /keys': async asked => {
      writable()
      const { name, models, limits } = asked.body
      checkName(name)
      if (configured(name)) {
        throw new ConsoleProblem('conflict', 'gateway.yaml has a key of that name', { field: 'name' })
      }
      const made = generate(randomBytes)
      const key = {
        name,
        digest: hash('sha256', made, 'buffer'),
        models: models === undefined ? null : checkModels(models),
        limits: limits === undefined ? null : limitsOf(limits),
      }
      try {
        await desk.ask('createKey', key, clock.wall(), actorOf(asked))
      } catch (error) {
        if (!(error instanceof DeskError) || error.code !== 'taken') throw error
        throw new ConsoleProblem('conflict', error.message, { field: 'name' })
      }
      return { name, key: made }
    },

    'POST /keys/find': async ({ body: { key } }) => {
      const digest = hash('sha256', key, 'buffer')
      const { keys, blocks } = await desk.ask('storedKeys')
      const isIt = (other: { readonly digest: Uint8Array }) => digest.equals(other.digest)
      const written = host.current().config.keys.find(isIt)
      if (written) {
        return {
          owner: { name: written.name, origin: 'config', state: blocks.some(isIt) ? 'blocked' : 'live' },
        }
      }
      const stored = keys.find(({ key }) => isIt(key))
      const state = stored?.revokedAt === null ? 'live' : 'revoked'
      return { owner: stored === undefined ? null : { name: stored.key.name, origin: 'store', state } }
    },

    'PATCH /keys/:name': async asked => {
      writable()
      const { params: { name }, body } = asked
      const { keys } = await desk.ask('storedKeys')
      const isKnown = keys.some(({ key, revokedAt }) => key.name === name && revokedAt === null)
      if (!isKnown) throw configured(name) ? ofFile(name) : unknown(name)
      const to = {
        models: body.models && checkModels(body.models),
        limits: body.limits && limitsOf(body.limits),
      }
      const detail = [
        ...to.models === undefined ? [] : [`models: ${modelsText(to.models)}`],
        ...to.limits === undefined ? [] : [`limits: ${limitsText(to.limits)}`],
      ].join('; ')
      if (detail === '') return null
      confirm(await desk.ask('changeKey', name, to, detail, clock.wall(), actorOf(asked)), name)
      return null
    },

    'DELETE /keys/:name': async asked => {
      writable()
      const { name } = asked.params
      const revoked = await desk.ask('revokeKey', name, clock.wall(), actorOf(asked))
      if (revoked !== 'unknown') {
        confirm(revoked, name)
        return null
      }
      const key = configured(name)
      if (key === undefined) throw unknown(name)
      confirm(await desk.ask('setBlocked', name, key.digest, true, clock.wall(), actorOf(asked)), name)
      return null
    },

    'POST /keys/:name/unblock': async asked => {
      writable()
      const { name } = asked.params
      const key = configured(name)
      if (key === undefined) throw unknown(name)
      confirm(await desk.ask('setBlocked', name, key.digest, false, clock.wall(), actorOf(asked)), name)
      return null
    },

    'GET /audit': async ({ query }) => {
      const entries = await desk.ask('audit', query.before ?? null, AUDIT_PAGE + 1)
      const page = entries.slice(0, AUDIT_PAGE)
      return {
        entries: page.map(({ at, ...entry }) => ({ ...entry, at: isoTime(at) })),
        next: entries.length > AUDIT_PAGE ? page.at(-1)?.id ?? null : null,
      }
    },
  }
}

/** A key's own limits, laid over those of every key; null = there are none. */
function inForce(own: Limits | null, defaults: Limits | null): PlainLimits | null {
  if (own === null && defaults === null) return null
  const { whole, models } = plan(own, defaults)
  return plainOf({ ...whole, models })
}

function actorOf(asked: Pick<Asked<'POST /keys'>, 'session' | 'caller'>): Actor {
  return { actor: `console: ${sessionIn(asked).name}`, address: asked.caller.address }
}

/** @throws ConsoleProblem not_found; unavailable where a running gateway may not go by it yet */
function confirm(changed: Changed, name: string): void {
  if (changed === 'unknown') throw unknown(name)
  if (changed !== 'unconfirmed') return
  throw new ConsoleProblem('unavailable', 'it is written down, but a running gateway has not confirmed it')
}

function unknown(name: string): ConsoleProblem {
  return new ConsoleProblem('not_found', `there is no live key named ${JSON.stringify(name)}`)
}

function ofFile(name: string): ConsoleProblem {
  return new ConsoleProblem('conflict', `${JSON.stringify(name)} is a key of gateway.yaml: change it there`)
}
