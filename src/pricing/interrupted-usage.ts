import type { EndpointName } from '../protocols/shared/names.ts'
import type { TokenCounter } from './token-counter.ts'
import { provisionalUsage } from './provisional.ts'
import { free, settleUsage } from './settle-usage.ts'
import type { Answer, Settled } from './settle-usage.ts'

/**
 * What an answer used that broke under way and that another goes on with. The
 * ledger has to have what the client was told: so the figures are those of the
 * count, unless the client is to be told before that is done, and from then on
 * they are what it was told.
 */
export class Share {
  /** The figures for the ledger. */
  readonly settled: Promise<Settled>
  readonly #roughly: () => Settled
  #known: Settled | null = null

  /** @param roughly what is known at this moment, without counting */
  constructor(counting: Promise<Settled>, roughly: () => Settled) {
    this.#roughly = roughly
    this.settled = counting.then(counted => (this.#known ??= counted))
    // Who settles the exchange awaits it; until then a fault is nobody's.
    this.settled.catch(() => {})
  }

  /** The figures for the client. */
  get told(): Settled {
    return (this.#known ??= this.#roughly())
  }
}

/** An answer that broke under way, after its client got some of it. */
export interface Broken {
  readonly endpoint: EndpointName
  /** The request's body; null where there is none to look at. */
  readonly request: Buffer | null
  readonly answer: Answer
  /** Tokens of the request, as estimated at admission. */
  readonly estimatedInput: number | null
}

/** Begins to count what an answer used that broke under way. */
export function createShare(counter: TokenCounter, { estimatedInput, ...input }: Broken): Share {
  const meter = input.answer.kind === 'stream' ? input.answer.meter : null
  const counting = Promise.try(settleUsage, { ...input, end: 'other', abandoned: 'none' }, counter)
  return new Share(counting, () => {
    // Without anything generated nobody pays.
    if (!meter?.sawContent) return free()
    const reading = meter.reading()
    return {
      usage: provisionalUsage(meter, estimatedInput),
      source: reading ? 'mixed' : 'estimated',
      billed: true,
      suspect: reading?.suspect ?? false,
      unread: false,
    }
  })
}
