import { stat, utimes } from 'node:fs/promises'
import type { Exchange } from '../context/exchange.ts'
import { asksForEvents } from '../context/exchange.ts'
import type { Gateway, Rejection } from '../gateway/gateway.ts'
import { candidateOf } from '../routing/candidate.ts'
import type { Live, UpstreamState } from './api/panel.ts'
import type { DeskLink } from './store/console-store-client.ts'
import { isoTime } from './texts.ts'

/** What one process has under way, and what it knows of the candidates. */
export interface Doing {
  readonly running: number
  readonly streams: number
  /** The longest-running first; not all where there are many. */
  readonly exchanges: readonly Live['exchanges'][number][]
  readonly candidates: readonly (UpstreamState['candidates'][number] & { readonly upstream: string })[]
  readonly rejections: readonly (readonly [upstream: string, rejection: Rejection])[]
}

/**
 * ms between two looks whether somebody looks at the console, and between two snapshots while somebody does.
 */
const EVERY = 1_500
/** ms for which a look at the console lasts. */
const LOOKED = 60_000
/** ms after which a snapshot is that of a worker that has ended. */
const STALE = 6_000
/** Exchanges that are told one by one. */
const MOST = 500
/** ms between two notes that somebody looks. */
const NOTE = 5_000

/** @param own the only key whose requests count; null = all do */
export function doingOf({ lasting, health, config }: Gateway, own: string | null): Doing {
  const named = (name: string) => config.upstreams.has(name)
  const all: Exchange[] = []
  let streams = 0
  for (const exchange of lasting.running) {
    if (exchange.classified.endpoint.name === 'status') continue
    if (own !== null && exchange.identity.key?.name !== own) continue
    all.push(exchange)
    if (asksForEvents(exchange)) streams++
  }
  all.sort((a, b) => a.startedAt - b.startedAt)
  return {
    running: all.length,
    streams,
    exchanges: all.slice(0, MOST).map(shown),
    candidates: health.conditions().map(([id, { circuit, opensIn, inFlight, firstByteMs }]) => {
      const [upstream, model] = candidateOf(id)
      const opens = opensIn === Infinity || circuit === 'closed' ? null : opensIn
      return {
        upstream,
        model: model === '' ? null : model,
        circuit,
        opens_in_ms: opens,
        in_flight: inFlight,
        first_byte_ms: firstByteMs,
      }
    }),
    rejections: [...lasting.rejections].filter(([name]) => named(name)),
  }
}

function shown(exchange: Exchange): Live['exchanges'][number] {
  const { id, startedWall, identity, model, candidate, relay, bytesOut } = exchange
  return {
    request_id: id,
    started_at: isoTime(startedWall),
    key: identity.key?.name ?? null,
    model,
    upstream: candidate?.upstream.name ?? null,
    stream: asksForEvents(exchange),
    bytes_out: relay?.bytes ?? bytesOut,
  }
}

export interface WorkersOptions {
  readonly current: () => Gateway
  /** The number of this process among several; null where there is one. */
  readonly worker: number | null
  /** The file that all of them share; null = they share none. */
  readonly file: string | null
  readonly desk: DeskLink
}

/**
 * What all workers do together. Each writes down what it does for as long as
 * somebody looks at the console: that somebody does is told by the time at which
 * the file was last touched, so that nobody has to open it to find out.
 */
export class Workers {
  readonly #options: WorkersOptions
  #noted = 0
  #timer: NodeJS.Timeout | null = null
  #closed = false

  constructor(options: WorkersOptions) {
    this.#options = options
    if (this.#shares) this.#wait()
  }

  /** Of every process, this one first. `own` is the only key whose requests count; null = all do. */
  async all(own: string | null = null): Promise<Doing[]> {
    const { current, worker, desk } = this.#options
    const here = doingOf(current(), own)
    if (!this.#shares) return [here]
    await this.#note()
    const now = Date.now()
    const others = await desk.ask('snapshots', now - STALE, now + STALE)
    return [here, ...others.filter(other => other.worker !== worker)
      .map(({ data }) => JSON.parse(data) as Doing)
      .map(there => (own === null ? there : onlyOf(there, own)))]
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  get #shares(): boolean {
    return this.#options.worker !== null && this.#options.file !== null
  }

  async #note(): Promise<void> {
    const now = Date.now()
    if (now - this.#noted < NOTE) return
    this.#noted = now
    await utimes(this.#options.file as string, new Date(now), new Date(now)).catch(ignore)
  }

  #wait(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => void this.#look().catch(ignore).finally(() => this.#wait()), EVERY).unref()
  }

  async #look(): Promise<void> {
    const { file, worker, current, desk } = this.#options
    const { mtimeMs } = await stat(file as string)
    if (Date.now() - mtimeMs > LOOKED || this.#closed) return
    const data = JSON.stringify(doingOf(current(), null))
    await desk.ask('saveSnapshot', { worker: worker as number, data }, Date.now())
  }
}

/** Counted among those that the snapshot has. */
function onlyOf(there: Doing, own: string): Doing {
  const exchanges = there.exchanges.filter(({ key }) => key === own)
  const streams = exchanges.filter(({ stream }) => stream).length
  return { ...there, exchanges, running: exchanges.length, streams }
}

/** There is no file as long as nobody has looked, and what fails now may go well the next time. */
function ignore(): void {}
