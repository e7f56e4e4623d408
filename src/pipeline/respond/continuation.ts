import type { GatewayError } from '../../base/errors.ts'
import type { AttemptRecord, Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { createShare } from '../../pricing/interrupted-usage.ts'
import type { Edit } from '../../protocols/shared/splice.ts'
import { isEventStream } from '../../proxy/response-head.ts'
import type { AnswerHead } from '../../proxy/response-head.ts'
import type { Observer, RelayEnd } from '../../proxy/relay.ts'
import { resumption } from '../../protocols/continuation.ts'
import type { Before, Joiner, Resumption, Standing } from '../../protocols/continuation.ts'
import type { Step } from '../../routing/candidate-state.ts'
import { usedSoFar } from '../settle/ledger-row.ts'
import { Followed } from './continuation-observer.ts'
import type { OnFlaw } from './continuation-observer.ts'
import { roomFor } from './observe.ts'
import { WholeEvents } from './whole-events.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Follows the client's stream, so that where it breaks another candidate can go
 * on with it (`resume: continue`). It goes through these once for each attempt:
 *
 *   1. `begin` as the attempt does, with `edits` in its request;
 *   2. `follow` the answer that comes of it;
 *   3. `interrupted` awaits its end;
 *   4. where it breaks, `stand` tells what can be done, and `goOn` has it done.
 */
export class Rescue {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #onFlaw: OnFlaw
  /** A string tells why nobody could go on, whatever comes. */
  readonly #resumption: Resumption | string
  #events: WholeEvents | null = null
  #followed: Followed | null = null
  /** What the client gets is no stream that can be followed: nobody knows where it stands. */
  #isUnread = false
  #broke: GatewayError | null = null
  /** What the answers so far have used; null = this is the first. */
  #before: (() => Before) | null = null
  /** Of the answer that is under way: it may come and break before anybody waits for that. */
  #interruption: PromiseWithResolvers<Step> | null = null

  /** @param onFlaw gets what is wrong with an event that the client is not to see, or cannot */
  constructor(gateway: Gateway, exchange: Exchange, onFlaw: OnFlaw) {
    const { classified, body } = exchange
    this.#gateway = gateway
    this.#exchange = exchange
    this.#onFlaw = onFlaw
    this.#resumption = body?.json
      ? resumption(classified.endpoint.name, body.bytes)
      : 'the request is no JSON object'
  }

  /** What broke the stream last that is to be continued; null = nothing did. */
  get broke(): GatewayError | null {
    return this.#broke
  }

  /** What is changed in the client's body to ask for the rest; null while all is to be asked for. */
  get edits(): ((body: Buffer) => Edit[]) | null {
    const resumption = this.#resumption
    return this.#broke === null || typeof resumption === 'string' ? null : body => resumption.edits(body)
  }

  /** An attempt begins. */
  begin(): void {
    if (typeof this.#resumption !== 'string') this.#interruption = Promise.withResolvers()
  }

  /** Looks on while an answer passes, the first one or one that goes on with it, and makes it fit. */
  follow(inner: Observer, head: AnswerHead): Observer {
    const resumption = this.#resumption
    // Compressed against our asking, its events cannot be followed.
    this.#isUnread = !isEventStream(head) || head.coding !== null || head.status !== 200
    if (typeof resumption === 'string' || this.#isUnread) return inner
    const events = new WholeEvents(this.#before !== null, roomFor(this.#gateway, this.#exchange))
    this.#events = events
    const joiner = this.#before ? resumption.join(this.#before) : noted(resumption, events)
    this.#followed = new Followed(inner, events, joiner, this.#onFlaw)
    return this.#followed
  }

  /**
   * Awaits how the answer under way ends, or where it is to go on.
   *
   * @param done settles when nothing more will be sent to the client
   */
  interrupted(done: Promise<RelayEnd>): Promise<RelayEnd | Step> {
    return this.#interruption ? Promise.race([done, this.#interruption.promise]) : done
  }

  /** The stream broke: what can be done for its client. To be asked once. */
  stand(): Standing {
    const resumption = this.#resumption
    if (typeof resumption === 'string') return { can: 'nothing', reason: resumption }
    if (this.#isUnread) return { can: 'nothing', reason: 'the stream cannot be read' }
    if (this.#events?.overflowed) return { can: 'nothing', reason: 'an event is too long to be kept' }
    // Of any other event somebody else has more to say, and may say that too.
    const last = this.#followed?.broken(data => resumption.saysLast(data)) ?? NOTHING
    const { standing } = resumption
    return standing.can === 'finish' ? { ...standing, rest: Buffer.concat([last, standing.rest]) } : standing
  }

  /**
   * The stream broke. What came of it so far is billed for itself, and what
   * follows goes on where the client stands.
   *
   * @param record of the attempt that broke
   * @param step to whoever goes on
   */
  goOn(error: GatewayError, record: AttemptRecord, step: Step): void {
    this.#broke = error
    setAside(this.#gateway, this.#exchange, record)
    this.#before = usedSoFar(this.#exchange)
    this.#interruption?.resolve(step)
  }

  /** The error that the upstream told of in the stream, as it came; null = it told of none. */
  get lastWords(): string | null {
    const flaw = this.#events?.flaw
    return flaw?.kind === 'error' ? flaw.bytes.toString('utf8') : null
  }
}

/** A first answer passes as it is; one that goes on with another is translated. */
function noted(resumption: Resumption, events: WholeEvents): Joiner {
  return {
    push: bytes => {
      // From there on nobody could go on with it, and they are no whole events.
      if (!events.overflowed) resumption.sent(bytes)
      return bytes
    },
    end: () => NOTHING,
  }
}

/** An attempt brought a part of an answer, and is to be billed for it. */
function setAside({ accounts: { counter } }: Gateway, exchange: Exchange, record: AttemptRecord): void {
  const { answer, quoted, estimatedInput, prompt, classified: { endpoint } } = exchange
  if (answer) {
    const share = createShare(counter, { endpoint: endpoint.name, request: prompt, answer, estimatedInput })
    exchange.earlier.push({ answer, quoted, record, estimatedInput, share })
  }
  exchange.answer = null
}
