import type { IncomingMessage } from 'node:http'
import { behaviourOfModel, onTurn, parseBehaviour, type Behaviour } from './behaviour.ts'
import type { ExchangeCounter } from './stats.ts'

/** What the exchanges of one simulator share. */
export interface SimulatorContext {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** A fresh identifier with the prefix. */
  readonly id: (prefix: string) => string
  /** How often each list of behaviours with `first` or `every` was asked for. */
  readonly turns: Map<string, number>
  readonly counter: ExchangeCounter
}

/** Maximum number of counted lists; beyond it the least recently used one is dropped. */
const MAX_TURNS = 10_000

/** The list of the header; '' when there is none. */
export function behaviourHeader(incoming: IncomingMessage): string {
  const header = incoming.headers['x-simulate']
  return typeof header === 'string' ? header : ''
}

/**
 * The behaviours of one request. `first` and `every` count the request.
 *
 * @param list that of the header
 * @throws BehaviourError
 */
export function behaviourOf(context: SimulatorContext, model: string, list: string): Behaviour {
  const ofModel = behaviourOfModel(model)
  const text = ofModel === '' || list === '' ? ofModel + list : `${ofModel},${list}`
  const behaviour = parseBehaviour(text)
  if (behaviour.first === undefined && behaviour.every === undefined) return behaviour
  const turn = context.turns.get(text) ?? 0
  context.turns.delete(text)
  context.turns.set(text, turn + 1)
  if (context.turns.size > MAX_TURNS) context.turns.delete(context.turns.keys().next().value!)
  return onTurn(behaviour, turn)
}

/** The path and the query of a request target. */
export function splitTarget(target: string): [path: string, query: string] {
  const mark = target.indexOf('?')
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}
