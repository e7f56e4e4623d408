import { callerDigest } from '../auth/callers/caller-of.ts'
import type { Context, OperationRequest, Operations } from './context.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { actorOf, checkChangeResult } from './key-changes.ts'

type CallerOperations = Pick<Operations, 'POST /callers/:name/block' | 'POST /callers/:name/unblock'>

/** Operations on callers, who have tokens of an issuer in place of a key. */
export function callerOperations({ host, clock, store }: Context): CallerOperations {
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
    'POST /callers/:name/block': asked => setBlocked(asked, true),
    'POST /callers/:name/unblock': asked => setBlocked(asked, false),
  }
}
