import { GatewayError } from '../../base/errors.ts'
import type { Observer } from '../../proxy/relay.ts'
import type { Joiner } from '../../protocols/continuation.ts'
import type { FlawKind, WholeEvents } from './whole-events.ts'

export type OnFlaw = (error: GatewayError) => void

const NOTHING = Buffer.alloc(0)

/** Looks on while a stream passes in whole events, which a joiner makes fit what the client has. */
export class Followed implements Observer {
  readonly #inner: Observer
  readonly #events: WholeEvents
  readonly #joiner: Joiner
  readonly #onFlaw: OnFlaw

  /**
   * @param inner sees the stream as it comes
   * @param onFlaw called soon after the stream had an event that is none, which the client does not see
   */
  constructor(inner: Observer, events: WholeEvents, joiner: Joiner, onFlaw: OnFlaw) {
    this.#inner = inner
    this.#events = events
    this.#joiner = joiner
    this.#onFlaw = onFlaw
  }

  readonly filter = {
    push: (chunk: Buffer): Buffer => {
      const wasWell = this.#events.flaw === null
      const out = this.#pass(this.#events.push(chunk))
      const { flaw } = this.#events
      // Not now: what stood before it has to reach the client first.
      if (wasWell && flaw !== null) queueMicrotask(() => this.#onFlaw(flawError(flaw.kind)))
      return out
    },
    end: (): Buffer => this.#last(this.#events.end()),
  }

  /**
   * The stream broke.
   *
   * @param wants asked of what its last event says, where that lacks line ends alone
   * @returns that event as the client gets it; nothing where there is none, or it is not wanted
   */
  broken(wants: (data: string) => boolean): Buffer {
    return this.#last(this.#events.end(wants))
  }

  get terminated(): boolean | null {
    return this.#events.flaw === null ? this.#inner.terminated : false
  }

  get atBoundary(): boolean {
    return this.#events.overflowed ? this.#inner.atBoundary : true
  }

  push(chunk: Buffer): void {
    this.#inner.push(chunk)
  }

  end(): void {
    this.#inner.end()
    this.#events.close()
  }

  #pass(events: Buffer): Buffer {
    return this.#show(this.#inner.filter?.push(events) ?? events)
  }

  #last(events: Buffer): Buffer {
    const rest = this.#pass(events)
    const late = this.#show(this.#inner.filter?.end() ?? NOTHING)
    return Buffer.concat([rest, late, this.#joiner.end()])
  }

  #show(events: Buffer): Buffer {
    return events.length > 0 ? this.#joiner.push(events) : events
  }
}

function flawError(kind: FlawKind): GatewayError {
  switch (kind) {
    case 'error':
      return new GatewayError('upstream_cut', 'the upstream broke off the stream with an error')
    case 'malformed':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is not well-formed')
    case 'too_long':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is too long to be joined')
  }
}
