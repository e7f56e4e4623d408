import { Slots } from '../../base/slots.ts'
import type { Limits } from '../../config/key-types.ts'
import type { Ticket } from '../queue/admission-queue.ts'
import type { LimitedKey } from '../types.ts'
import type { AdmissionReply, LimiterReplies, LimiterRequest, SharedSpend } from './lease-messages.ts'

type RequestOf<K extends LimiterRequest['kind']> = LimiterRequest & { readonly kind: K }

/** The open requests and leases of one worker. Sends the replies of one turn of the event loop together. */
export abstract class LimiterConnection<Key, Open, Lease extends object> {
  /** The open requests, indexed by the worker's ids, which are small numbers. */
  protected readonly open: (Open | null)[] = []
  protected readonly leases = new Slots<Lease>()
  /** The requests that wait, by the worker's ids. */
  protected readonly tickets = new Map<number, Ticket>()
  /** true = the worker has ended, and its reservations and leases count as used. */
  protected isClosed = false
  readonly #send: (replies: LimiterReplies) => void
  readonly #keys = new Map<number, Key>()
  #replies: AdmissionReply[] = []
  #recalledLeases: number[] = []

  constructor(send: (replies: LimiterReplies) => void) {
    this.#send = send
  }

  handle(requests: readonly LimiterRequest[]): void {
    if (this.isClosed) return
    for (const request of requests) this.#handle(request)
  }

  /** Call this when the worker has ended. Counts its reservations and leases as used, so that budgets are not exceeded. */
  close(): void {
    this.isClosed = true
    for (const ticket of this.tickets.values()) ticket.leave()
    for (const open of this.open.splice(0)) if (open) this.settle(open, null, null)
    for (const lease of this.leases) this.settleLost(lease)
  }

  protected reply(reply: AdmissionReply): void {
    this.#replies.push(reply)
    this.#scheduleSend()
  }

  protected recall(leaseId: number): void {
    this.#recalledLeases.push(leaseId)
    this.#scheduleSend()
  }

  protected abstract registerKey(key: LimitedKey): Key
  protected abstract admit(request: RequestOf<'admit'>, key: Key): void
  /** Adds the request to `tickets` until it is decided. */
  protected abstract wait(request: RequestOf<'wait'>, key: Key): void
  protected abstract returnLease(lease: Lease, request: RequestOf<'return-lease'>): void
  protected abstract releaseConcurrency(open: Open): void
  /** @param tokens null = unknown, so that the reserved amount counts @param pico 1e-12 USD; null as for tokens */
  protected abstract settle(open: Open, tokens: number | null, pico: bigint | null): void
  protected abstract settleLost(lease: Lease): void
  protected abstract restore(rows: readonly SharedSpend[], keyOf: (ref: number) => Key): void
  protected abstract setDefaults(limits: Limits | null): void

  #handle(request: LimiterRequest): void {
    switch (request.kind) {
      case 'key': {
        const { ref, ...key } = request
        this.#keys.set(ref, this.registerKey(key))
        return
      }
      case 'admit':
        return this.admit(request, this.#key(request.ref))
      case 'wait':
        return this.wait(request, this.#key(request.ref))
      case 'leave':
        return this.tickets.get(request.id)?.leave()
      case 'return-lease': {
        const lease = this.leases.at(request.leaseId)
        if (lease === null) return
        this.leases.delete(request.leaseId)
        return this.returnLease(lease, request)
      }
      case 'release-concurrency': {
        const open = this.open[request.id]
        if (open) this.releaseConcurrency(open)
        return
      }
      case 'settle':
        for (const [n, id] of request.ids.entries()) {
          const open = this.open[id]
          this.open[id] = null
          if (open) this.settle(open, request.tokens[n] ?? null, request.pico[n] ?? null)
        }
        return
      case 'restore':
        return this.restore(request.rows, ref => this.#key(ref))
      case 'defaults':
        return this.setDefaults(request.limits)
    }
  }

  #scheduleSend(): void {
    if (this.#replies.length + this.#recalledLeases.length > 1) return
    queueMicrotask(() => {
      const replies = { replies: this.#replies, recalledLeases: this.#recalledLeases }
      this.#replies = []
      this.#recalledLeases = []
      if (!this.isClosed) this.#send(replies)
    })
  }

  #key(ref: number): Key {
    const key = this.#keys.get(ref)
    if (key === undefined) throw new Error(`no key is registered as ${ref}`)
    return key
  }
}
