import { hash, randomBytes } from 'node:crypto'
import { issuerOf } from '../auth/callers/caller-keys.ts'
import { callerDigest } from '../auth/callers/caller-of.ts'
import { limitsText, modelsText } from '../auth/key-texts.ts'
import { isoTime } from '../base/clock.ts'
import { generateKey } from '../base/secrets/key-format.ts'
import { PREFIX_LENGTH } from '../config/sections/keys.ts'
import type { Key } from '../config/key-types.ts'
import { ANONYMOUS_KEY } from '../pipeline/parts/accounts.ts'
import type { KeyState } from './api/keys.ts'
import { requireSession, type OperationRequest, type Context, type Operations } from './context.ts'
import { checkDescription, checkModels, checkName, effectivePlainLimits, expiryOf, limitsOf, toPlainLimits } from './key-input.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { actorOf, checkChangeResult, unknownKeyError } from './key-changes.ts'
import { NO_FIGURES } from './reports/sums.ts'
import type { KeyUse } from './reports/used-names.ts'
import { ConsoleStoreError } from './store/console-store-client.ts'
import { isoTimeOrNull } from './state/texts.ts'

type KeyOperations = Pick<
  Operations,
  'GET /own' | 'GET /keys' | 'POST /keys' | 'PATCH /keys/:name' | 'DELETE /keys/:name'
  | 'POST /keys/:name/rotate' | 'POST /keys/:name/unblock' | 'POST /keys/find' | 'GET /audit'
>

const NO_LEDGER = 'No ledger is configured, and keys are stored beside it'
const AUDIT_PAGE = 100
const DEFAULT_GRACE_SECONDS = 86_400

/** Operations on keys. Keys of gateway.yaml can only be blocked here. Keys that are created here are stored in the key store. */
export function keyOperations({ host, clock, store, reports }: Context): KeyOperations {
  const configured = (name: string): Key | undefined => host.current().config.keys.find(key => key.name === name)
  const writable = (): void => {
    if (host.current().keyStore === null) throw new ConsoleProblem('conflict', `${NO_LEDGER}. Set ledger.file in gateway.yaml.`)
  }

  const knownGroup = (name: string): string => {
    if (host.current().config.groups.has(name)) return name
    throw new ConsoleProblem('bad_request', 'gateway.yaml has no group with this name.', { field: 'group' })
  }

  const setBlocked = async (
    asked: Pick<OperationRequest<'DELETE /keys/:name'>, 'params' | 'session' | 'caller'>, blocked: boolean,
  ): Promise<null> => {
    const { name } = asked.params
    const key = configured(name)
    if (key === undefined) throw unknownKeyError(name)
    checkChangeResult(await store.call('setBlocked', name, key.digest, blocked, clock.wall(), actorOf(asked)), name)
    return null
  }

  return {
    'GET /own': async asked => {
      const { name, identity } = requireSession(asked)
      const { accounts, config } = host.current()
      const key = identity?.limited ?? ANONYMOUS_KEY
      const figures = accounts.limiter.rateLimitStates(key, null)
      const rate = (rate: typeof figures.requests) =>
        rate && { limit: rate.limit, remaining: Math.max(0, Math.floor(rate.remaining)), reset_ms: rate.resetMs }
      return {
        name, models: identity?.key?.models ? [...identity.key.models] : null,
        limits: effectivePlainLimits(identity?.key?.limits ?? null, config.limits),
        requests: rate(figures.requests), tokens: rate(figures.tokens),
      }
    },

    'GET /keys': async () => {
      const { config, keyStore } = host.current()
      const hasLedger = keyStore !== null
      const [{ keys, blocks }, use] = await Promise.all([
        store.call('storedKeys'), hasLedger ? reports.keyUse() : new Map<string, KeyUse>(),
      ])
      const blocked = new Set(blocks.map(({ digest }) => Buffer.from(digest).toString('hex')))
      const stateOf = (key: Key, origin: KeyState['origin'], createdAt: number | null, revokedAt: number | null) => {
        const used = use.get(key.name)
        const makers = key.caller === undefined ? [] : [callerDigest(key.caller)]
        const isBlocked = [key.digest, ...makers].some(digest => blocked.has(Buffer.from(digest).toString('hex')))
        return {
          name: key.name, origin,
          place: key.line === undefined ? null : `${config.file}:${key.line}`,
          state: revokedAt !== null ? 'revoked' : isBlocked ? 'blocked' : 'live',
          models: key.models && [...key.models],
          limits: toPlainLimits(key.limits),
          group: key.group ?? null, owner: key.owner ?? key.caller ?? null, note: key.note ?? null,
          expires_at: isoTimeOrNull(key.expiresAt ?? null),
          prefix: key.prefix ?? null,
          old_secrets: (key.oldSecrets ?? []).filter(({ validUntil }) => validUntil > clock.wall()).map(
            ({ digest, validUntil }) => ({ sha256_prefix: Buffer.from(digest).toString('hex', 0, 4), valid_until: isoTime(validUntil) }),
          ),
          created_at: isoTimeOrNull(createdAt), revoked_at: isoTimeOrNull(revokedAt), last_used_at: used?.last_used_at ?? null,
          figures: used?.figures ?? NO_FIGURES,
        } satisfies KeyState
      }
      return {
        store: { writable: hasLedger, reason: hasLedger ? null : NO_LEDGER },
        default_limits: toPlainLimits(config.limits),
        groups: [...config.groups.values()].map(({ name, parent, models, limits }) => (
          { name, parent, models: models && [...models], limits: toPlainLimits(limits) })),
        keys: [
          ...config.keys.map(key => stateOf(key, 'config', null, null)),
          ...keys.map(({ key, createdAt, revokedAt }) => stateOf(key, 'store', createdAt, revokedAt)),
        ],
      }
    },

    'POST /keys': async asked => {
      writable()
      const { name, models, limits, group, expires_at: expires, ...described } = asked.body
      checkName(name)
      if (issuerOf(name, host.current().config.callers) !== null) {
        throw new ConsoleProblem('bad_request', 'name belongs to callers: it begins with the name of an entry of callers.', { field: 'name' })
      }
      if (configured(name)) {
        throw new ConsoleProblem('conflict', 'gateway.yaml already has a key with this name.', { field: 'name' })
      }
      const made = generateKey(randomBytes)
      const key = {
        name,
        digest: hash('sha256', made, 'buffer'),
        models: models === undefined ? null : checkModels(models),
        limits: limits === undefined ? null : limitsOf(limits),
        prefix: made.slice(0, PREFIX_LENGTH),
        ...group !== undefined && { group: knownGroup(group) },
        ...checkDescription(described),
        ...expires !== undefined && { expiresAt: expiryOf(expires, clock.wall()) },
      }
      try {
        await store.call('createKey', key, clock.wall(), actorOf(asked))
      } catch (error) {
        if (!(error instanceof ConsoleStoreError) || error.code !== 'taken') throw error
        throw new ConsoleProblem('conflict', 'An active key already has this name.', { field: 'name' })
      }
      return { name, key: made }
    },

    'POST /keys/find': async ({ body: { key } }) => {
      const digest = hash('sha256', key, 'buffer')
      const { keys, blocks } = await store.call('storedKeys')
      const isIt = (other: { readonly digest: Uint8Array, readonly oldSecrets?: readonly { readonly digest: Uint8Array }[] }) =>
        digest.equals(other.digest) || (other.oldSecrets ?? []).some(old => digest.equals(old.digest))
      const written = host.current().config.keys.find(isIt)
      if (written) {
        return { owner: { name: written.name, origin: 'config', state: blocks.some(isIt) ? 'blocked' : 'live' } }
      }
      const stored = keys.find(({ key }) => isIt(key))
      const state = stored?.revokedAt === null ? 'live' : 'revoked'
      return { owner: stored === undefined ? null : { name: stored.key.name, origin: 'store', state } }
    },

    'PATCH /keys/:name': async asked => {
      writable()
      const { params: { name }, body } = asked
      const { keys } = await store.call('storedKeys')
      const known = keys.find(({ key, revokedAt }) => key.name === name && revokedAt === null)
      if (known === undefined) throw configured(name) ? configuredKeyError(name) : unknownKeyError(name)
      if (known.key.caller !== undefined && (body.limits !== undefined || body.group !== undefined)) {
        throw new ConsoleProblem('conflict', 'A caller has made this key, so it has the limits and the group of the caller.')
      }
      const to = {
        models: body.models && checkModels(body.models),
        limits: body.limits && limitsOf(body.limits),
        group: body.group && knownGroup(body.group),
        ...checkDescription({ owner: body.owner, note: body.note }),
        expiresAt: typeof body.expires_at === 'string' ? expiryOf(body.expires_at, clock.wall()) : body.expires_at,
      }
      const detail = [
        ...to.models === undefined ? [] : [`models: ${modelsText(to.models)}`],
        ...to.limits === undefined ? [] : [`limits: ${limitsText(to.limits)}`],
        ...to.group === undefined ? [] : [`group: ${to.group ?? 'none'}`],
        ...to.owner === undefined ? [] : [`owner: ${to.owner ?? 'none'}`],
        ...to.note === undefined ? [] : [`note: ${to.note ?? 'none'}`],
        ...to.expiresAt === undefined ? [] : [`expires: ${isoTimeOrNull(to.expiresAt) ?? 'never'}`],
      ].join('; ')
      if (detail === '') return null
      checkChangeResult(await store.call('changeKey', name, to, detail, clock.wall(), actorOf(asked)), name)
      return null
    },

    'POST /keys/:name/rotate': async asked => {
      writable()
      const { params: { name }, body: { grace_seconds: grace = DEFAULT_GRACE_SECONDS } } = asked
      const made = generateKey(randomBytes)
      const now = clock.wall()
      const rotated = await store.call('rotateKey', name, {
        digest: hash('sha256', made, 'buffer'), prefix: made.slice(0, PREFIX_LENGTH), oldValidUntil: now + grace * 1_000,
      }, now, actorOf(asked))
      if (rotated === 'unknown' && configured(name)) throw configuredKeyError(name)
      // Return the new secret even if a gateway has not confirmed the rotation, because the caller cannot get it later.
      if (rotated === 'unknown') throw unknownKeyError(name)
      return { name, key: made }
    },

    'DELETE /keys/:name': async asked => {
      writable()
      const { name } = asked.params
      const revoked = await store.call('revokeKey', name, clock.wall(), actorOf(asked))
      if (revoked === 'unknown') return setBlocked(asked, true)
      checkChangeResult(revoked, name)
      return null
    },

    'POST /keys/:name/unblock': async asked => {
      writable()
      return setBlocked(asked, false)
    },

    'GET /audit': async ({ query }) => {
      const entries = await store.call('audit', query.before ?? null, AUDIT_PAGE + 1)
      const page = entries.slice(0, AUDIT_PAGE)
      return {
        entries: page.map(({ at, ...entry }) => ({ ...entry, at: isoTime(at) })),
        next: entries.length > AUDIT_PAGE ? page.at(-1)?.id ?? null : null,
      }
    },
  }
}

function configuredKeyError(name: string): ConsoleProblem {
  return new ConsoleProblem('conflict', `${JSON.stringify(name)} is a key in gateway.yaml. Change it there.`)
}
