import type { Exchange } from './exchange.ts'
import type { Edit } from './protocols/splice.ts'
import type { Observer } from './proxy/relay.ts'
import { resumption } from './resume/index.ts'
import type { Before, Joiner, Resumption, Standing } from './resume/index.ts'
import { WholeEvents } from './whole-events.ts'
import type { FlawKind } from './whole-events.ts'

/**
 * Follows a stream on its way to the client, so that another candidate can go on
 * with it where it breaks.
 */
export class Rescue {
  readonly #resumption: Resumption
  readonly #onFlaw: OnFlaw
  #events: WholeEvents | null = null
  #before: (() => Before) | null = null

  /** @param onFlaw called soon after the stream had an event that is none, which the client does not see */
  constructor(resumption: Resumption, onFlaw: OnFlaw) {
    this.#resumption = resumption
    this.#onFlaw = onFlaw
  }

  /** The error that the upstream told of in the stream, as it came; null = it told of none. */
  get lastWords(): string | null {
    const flaw = this.#events?.flaw
    return flaw?.kind === 'error' ? flaw.bytes.toString('utf8') : null
  }

  get standing(): Standing {
    if (this.#events?.overflowed) return { can: 'nothing', reason: 'an event is too long to be kept' }
    return this.#resumption.standing
  }

  /** What is changed in the client's body to ask for the rest. */
  edits(body: Buffer): Edit[] {
    return this.#resumption.edits(body)
  }

  /**
   * What follows goes on where the client's stream stands.
   *
   * @param before what the answers so far have used; asked for when the client is to be told
   */
  goOn(before: () => Before): void {
    this.#before = before
  }

  /** Looks on while an answer passes, the first one or one that goes on with it, and makes it fit. */
  follow(inner: Observer): Observer {
    const events = new WholeEvents(this.#before !== null)
    this.#events = events
    return new Followed(inner, events, this.#onFlaw, this.#before
      ? this.#resumption.join(this.#before)
      : noted(this.#resumption))
  }
}

export type OnFlaw = (kind: FlawKind) => void

const NOTHING = Buffer.alloc(0)

/** A first answer passes as it is; one that goes on with another is translated. */
function noted(resumption: Resumption): Joiner {
  return {
    push: events => {
      resumption.sent(events)
      return events
    },
    end: () => NOTHING,
  }
}

class Followed implements Observer {
  readonly #inner: Observer
  readonly #events: WholeEvents
  readonly #onFlaw: OnFlaw
  readonly #joiner: Joiner

  constructor(inner: Observer, events: WholeEvents, onFlaw: OnFlaw, joiner: Joiner) {
    this.#inner = inner
    this.#events = events
    this.#onFlaw = onFlaw
    this.#joiner = joiner
  }

  readonly filter = {
    push: (chunk: Buffer): Buffer => {
      const wasWell = this.#events.flaw === null
      const out = this.#pass(this.#events.push(chunk))
      const { flaw } = this.#events
      // Not now: what stood before it has to reach the client first.
      if (wasWell && flaw !== null) queueMicrotask(() => this.#onFlaw(flaw.kind))
      return out
    },
    end: (): Buffer => {
      const rest = this.#pass(this.#events.end())
      const late = this.#show(this.#inner.filter?.end() ?? NOTHING)
      return Buffer.concat([rest, late, this.#joiner.end()])
    },
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
  }

  #pass(events: Buffer): Buffer {
    return this.#show(this.#inner.filter?.push(events) ?? events)
  }

  #show(events: Buffer): Buffer {
    return events.length > 0 ? this.#joiner.push(events) : events
  }
}

/** Makes what follows the answer to a request; a string tells why nobody could go on with it. */
export function createRescue({ classified, body }: Exchange, onFlaw: OnFlaw): Rescue | string {
  if (!body?.json) return 'the request is no JSON object'
  const found = resumption(classified.endpoint.name, body.bytes)
  return typeof found === 'string' ? found : new Rescue(found, onFlaw)
}
