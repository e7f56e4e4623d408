import type { IncomingMessage } from 'node:http'
import { behaviourOfModel, onTurn, parseBehaviour, type Behaviour } from './behaviour.ts'
import type { ExchangeCounter } from './stats.ts'

/** State that all exchanges of one simulator share. */
export interface SimulatorContext {
  /** Returns ms since 1970. */
  readonly now: () => number
  /** Creates an identifier with the prefix. */
  readonly id: (prefix: string) => string
  /** Number of requests for each list of behaviours that has `first` or `every`. */
  readonly turns: Map<string, number>
  readonly counter: ExchangeCounter
}

/** Maximum number of lists that are counted. If there are more, the least recently used list is dropped. */
const MAX_TURNS = 10_000

/** The list in the header; '' = there is no header. */
export function behaviourHeader(incoming: IncomingMessage): string {
  const header = incoming.headers['x-simulate']
  return typeof header === 'string' ? header : ''
}

/**
 * The behaviours of one request. Counts the request if the list has `first` or `every`.
 *
 * @param list the list in the header
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
