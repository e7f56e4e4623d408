import { GatewayError } from '../../base/errors.ts'
import type { EventTranslator } from '../../protocols/shared/continuation.ts'
import type { Observer } from './relay.ts'
import type { StreamFaultKind, WholeEvents } from './whole-events.ts'

export type OnStreamFault = (error: GatewayError) => void

const NOTHING = Buffer.alloc(0)

/** Looks on while a stream passes in whole events, which a joiner makes fit what the client has. */
export class ContinuationObserver implements Observer {
  readonly #inner: Observer
  readonly #events: WholeEvents
  readonly #translator: EventTranslator
  readonly #onStreamFault: OnStreamFault

  /**
   * @param inner sees the stream as it comes
   * @param onFlaw called soon after the stream had an event that is none, which the client does not see
   */
  constructor(inner: Observer, events: WholeEvents, joiner: EventTranslator, onFlaw: OnStreamFault) {
    this.#inner = inner
    this.#events = events
    this.#translator = joiner
    this.#onStreamFault = onFlaw
  }

  readonly filter = {
    push: (chunk: Buffer): Buffer => {
      const wasWell = this.#events.fault === null
      const out = this.#filterEvents(this.#events.push(chunk))
      const { fault: flaw } = this.#events
      // Not now: what stood before it has to reach the client first.
      if (wasWell && flaw !== null) queueMicrotask(() => this.#onStreamFault(streamFaultError(flaw.kind)))
      return out
    },
    end: (): Buffer => this.#finish(this.#events.end()),
  }

  /**
   * The stream broke.
   *
   * @param wants asked of what its last event says, where that lacks line ends alone
   * @returns that event as the client gets it; nothing where there is none, or it is not wanted
   */
  takeLastEvent(wants: (data: string) => boolean): Buffer {
    return this.#finish(this.#events.end(wants))
  }

  get terminated(): boolean | null {
    return this.#events.fault === null ? this.#inner.terminated : false
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

  #filterEvents(events: Buffer): Buffer {
    return this.#translate(this.#inner.filter?.push(events) ?? events)
  }

  #finish(events: Buffer): Buffer {
    const rest = this.#filterEvents(events)
    const late = this.#translate(this.#inner.filter?.end() ?? NOTHING)
    return Buffer.concat([rest, late, this.#translator.end()])
  }

  #translate(events: Buffer): Buffer {
    return events.length > 0 ? this.#translator.push(events) : events
  }
}

function streamFaultError(kind: StreamFaultKind): GatewayError {
  switch (kind) {
    case 'error':
      return new GatewayError('upstream_cut', 'the upstream broke off the stream with an error')
    case 'malformed':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is not well-formed')
    case 'too_long':
      return new GatewayError('upstream_invalid', 'the upstream sent an event that is too long to be joined')
  }
}
