import { issuerOf } from '../auth/callers/caller-keys.ts'
import { callerDigest } from '../auth/callers/caller-of.ts'
import type { CallerIssuer } from '../config/caller-types.ts'
import type { Context, OperationRequest, Operations } from './context.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { actorOf, checkChangeResult } from './key-changes.ts'
import { effectivePlainLimits } from './key-input.ts'
import { NO_FIGURES } from './reports/sums.ts'
import type { KeyUse } from './reports/used-names.ts'

type CallerOperations = Pick<Operations, 'GET /callers' | 'POST /callers/:name/block' | 'POST /callers/:name/unblock'>

const RECENT_MS = 30 * 86_400_000
const MAX_CALLERS = 1_000

/** Operations on callers, who have tokens of an issuer in place of a key. */
export function callerOperations({ host, clock, store, reports }: Context): CallerOperations {
  const setBlocked = async (asked: Pick<OperationRequest<'POST /callers/:name/block'>, 'params' | 'session' | 'caller'>, blocked: boolean): Promise<null> => {
    const { name } = asked.params
    const { config, keyStore } = host.current()
    if (keyStore === null) throw new ConsoleProblem('conflict', 'No ledger is configured, and blocks are stored beside it. Set ledger.file in gateway.yaml.')
    // A caller of a removed issuer can only be unblocked.
    if (blocked && !config.callers.some(issuer => name.startsWith(`${issuer.name}:`))) {
      throw new ConsoleProblem('not_found', `No entry of callers has callers such as ${JSON.stringify(name)}.`)
    }
    checkChangeResult(await store.call('setBlocked', name, callerDigest(name), blocked, clock.wall(), actorOf(asked)), name)
    return null
  }
  return {
    'GET /callers': async ({ query: { search = '' } }) => {
      const { config, keyStore } = host.current()
      const now = clock.wall()
      const recent = { by: 'key,group', from: new Date(now - RECENT_MS).toISOString(), to: new Date(now).toISOString() }
      const [{ keys, blocks }, use, { groups }] = await Promise.all([
        store.call('storedKeys'),
        keyStore === null ? new Map<string, KeyUse>() : reports.keyUse(),
        keyStore === null ? { groups: [] } : reports.billing(recent, null),
      ])
      const blocked = new Set(blocks.map(({ digest }) => Buffer.from(digest).toString('hex')))
      const groupsOf = Map.groupBy(groups, ({ names: [key] }) => key)
      const live = Map.groupBy(keys.filter(({ key, revokedAt }) => revokedAt === null && (key.expiresAt ?? Infinity) > now), ({ key }) => key.caller)
      const text = search.trim().toLowerCase()
      const names = [...new Set([...use.keys(), ...blocks.map(({ name }) => name)])]
        .filter(name => issuerOf(name, config.callers) !== null && name.toLowerCase().includes(text))
      const callers = names.map(name => {
        const issuer = issuerOf(name, config.callers) as CallerIssuer
        const isBlocked = blocked.has(callerDigest(name).toString('hex'))
        const used = use.get(name)
        return {
          name, issuer: issuer.issuer, state: isBlocked ? 'blocked' as const : 'live' as const,
          groups: (groupsOf.get(name) ?? []).flatMap(({ names: [, group] }) => group ?? []),
          limits: effectivePlainLimits(issuer.limits, config.limits),
          keys: live.get(name)?.length ?? 0, keys_allowed: issuer.keys,
          last_used_at: used?.last_used_at ?? null, figures: used?.figures ?? NO_FIGURES,
        }
      })
      const cost = ({ figures }: (typeof callers)[number]) => Number(figures.cost_usd ?? 0)
      return { callers: callers.sort((a, b) => cost(b) - cost(a)).slice(0, MAX_CALLERS), total: callers.length }
    },
    'POST /callers/:name/block': asked => setBlocked(asked, true),
    'POST /callers/:name/unblock': asked => setBlocked(asked, false),
  }
}
