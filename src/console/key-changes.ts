import type { Actor } from '../auth/audit.ts'
import { requireSession, type OperationRequest } from './context.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { ChangeResult } from './store/console-store.ts'

export function actorOf(asked: Pick<OperationRequest<'POST /keys'>, 'session' | 'caller'>): Actor {
  const { role, name } = requireSession(asked)
  return { actor: `${role === 'key' ? 'key' : 'console'}: ${name}`, address: asked.caller.address }
}

/** @throws ConsoleProblem not_found; unavailable if a running gateway may not have applied the change */
export function checkChangeResult(changed: ChangeResult, name: string): void {
  if (changed === 'unknown') throw unknownKeyError(name)
  if (changed !== 'unconfirmed') return
  throw new ConsoleProblem('unavailable', 'The change is stored, but a running gateway has not confirmed it yet.')
}

export function unknownKeyError(name: string): ConsoleProblem {
  return new ConsoleProblem('not_found', `No active key is named ${JSON.stringify(name)}.`)
}
