import type { LimiterRequest } from './lease-messages.ts'
import type { ActualUsage } from '../types.ts'

/**
 * Sends the messages of one turn of the event loop together. Merges successive settlements into one message, and drops a release of
 * concurrency if the settlement of the same reservation follows directly.
 */
export class LeaseOutbox {
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
    const last = this.#requests.at(-1)
    if (last?.kind === 'release-concurrency' && last.id === id) this.#requests.pop()
    const before = this.#requests.at(-1)
    if (before?.kind === 'settle') {
      before.ids.push(id)
      before.tokens.push(tokens)
      before.pico.push(pico)
    } else {
      this.post({ kind: 'settle', ids: [id], tokens: [tokens], pico: [pico] })
    }
  }
}
