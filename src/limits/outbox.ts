import type { LimiterRequest } from './messages.ts'
import type { ActualUsage } from './types.ts'

/**
 * What a worker has to say to where the limits are kept. What comes up in one turn of the event
 * loop goes out together, and in few words: of requests that end, which are most of it, all that
 * follow each other share a message, and that one runs no more goes without saying once it is settled.
 */
export class Outbox {
  readonly #send: (requests: readonly LimiterRequest[]) => void
  #requests: LimiterRequest[] = []
  #isSendScheduled = false

  constructor(send: (requests: readonly LimiterRequest[]) => void) {
    this.#send = send
  }

  post(request: LimiterRequest): void {
    this.#requests.push(request)
    if (this.#isSendScheduled) return
    this.#isSendScheduled = true
    setImmediate(() => {
      const requests = this.#requests
      this.#isSendScheduled = false
      this.#requests = []
      this.#send(requests)
    })
  }

  postSettlement(id: number, { tokens, pico }: ActualUsage): void {
    const left = this.#requests.at(-1)
    if (left?.kind === 'leave' && left.id === id) this.#requests.pop()
    const before = this.#requests.at(-1)
    if (before?.kind === 'settle') {
      before.ids.push(id)
      before.tokens.push(tokens)
      before.picos.push(pico)
    } else {
      this.post({ kind: 'settle', ids: [id], tokens: [tokens], picos: [pico] })
    }
  }
}
