import type { Clock, Timer } from '../../base/clock.ts'
import type { CircuitChange, CircuitFailure } from '../../routing/circuit-log.ts'
import type { Send } from './budget-check.ts'

/** ms in which circuits of one upstream that open for the same reason are reported as one event. */
const WINDOW_MS = 5_000

interface Group { readonly changes: CircuitChange[], readonly timer: Timer }

/**
 * Reports circuits that open and close. An upstream that is down opens one circuit for each of its models: these circuits are one event.
 */
export class CircuitReports {
  readonly #clock: Clock
  readonly #send: Send
  readonly #groups = new Map<string, Group>()

  constructor(clock: Clock, send: Send) {
    this.#clock = clock
    this.#send = send
  }

  add(change: CircuitChange): void {
    const { upstream, state, last } = change
    // When a circuit closes, the reason of the earlier failure does not matter.
    const id = JSON.stringify([upstream, state, state === 'open' ? last?.reason : null])
    const known = this.#groups.get(id)
    if (known !== undefined) known.changes.push(change)
    else this.#groups.set(id, { changes: [change], timer: this.#clock.setTimeout(() => this.#report(id), WINDOW_MS) })
  }

  /** Reports all circuits that wait for the end of their window. */
  close(): void {
    for (const [id, { timer }] of this.#groups) {
      timer.cancel()
      this.#report(id)
    }
  }

  #report(id: string): void {
    const changes = this.#groups.get(id)?.changes ?? []
    this.#groups.delete(id)
    const [opened] = changes
    if (opened === undefined) return
    const { upstream, state, model } = opened
    const models = [...new Set(changes.map(change => change.model))]
    const byTime = changes.flatMap(({ first, last }) => [first, last]).filter(failure => failure !== null).sort((a, b) => a.at - b.at)
    const [first, last] = [failureOf(byTime[0]), failureOf(byTime.at(-1))]
    const what = models.length > 1 ? `${models.length} models on ${upstream}` : model === null ? upstream : `${model} on ${upstream}`
    const why = state === 'open' && last !== null ? `: ${last.reason}` : ''
    const failures = Math.max(...changes.map(change => change.failures))
    this.#send({
      type: state === 'open' ? 'circuit.opened' : 'circuit.closed', severity: state === 'open' ? 'error' : 'info', subject: upstream,
      message: `${models.length > 1 ? 'Circuits' : 'Circuit'} ${state}: ${what}${why}`,
      data: { upstream, model, models, failures, first, last },
    }, undefined, opened.at)
  }
}

function failureOf(failure: CircuitFailure | undefined) {
  return failure === undefined ? null : { ...failure, at: new Date(failure.at).toISOString() }
}
