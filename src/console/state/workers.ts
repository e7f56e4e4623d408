import { stat, utimes } from 'node:fs/promises'
import { isoTime } from '../../base/clock.ts'
import { wantsEventStream, type Exchange } from '../../pipeline/exchange/exchange.ts'
import type { Gateway, CredentialFailure } from '../../pipeline/parts/gateway.ts'
import { candidateOf } from '../../routing/candidate.ts'
import type { CredentialState } from '../../upstreams/credentials/credential-state.ts'
import type { RateLimitStates } from '../../limits/types.ts'
import type { CircuitCause } from '../../routing/circuit-log.ts'
import type { Live, UpstreamState } from '../api/panel.ts'
import type { ConsoleStoreClient } from '../store/console-store-client.ts'

export interface WorkerCandidate extends Readonly<UpstreamState['candidates'][number]> {
  readonly upstream: string
  /** Time at which the circuit opened, in ISO 8601; null = the circuit is closed. */
  readonly open_since: string | null
  readonly consecutive_failures: number
  /** The failures since the last success. */
  readonly cause: CircuitCause
}

/** The activity of one process. */
export interface WorkerActivity {
  readonly running: number
  readonly streams: number
  /** The exchanges that have run for the longest time, in descending order, at most `MAX_EXCHANGES`. */
  readonly exchanges: readonly Live['exchanges'][number][]
  readonly candidates: readonly WorkerCandidate[]
  readonly credentialFailures: readonly (readonly [upstream: string, failure: CredentialFailure])[]
  readonly upstreams: readonly WorkerUpstream[]
}

/** The state of an upstream in one process. */
export interface WorkerUpstream {
  readonly name: string
  readonly rateLimits: RateLimitStates
  /** The state of each credential of the pool, or of the only credential; empty = no credential. */
  readonly credentials: readonly CredentialState[]
}

const NO_RATE_LIMITS: RateLimitStates = { requests: null, tokens: null }

/** ms between two snapshots, and between two checks whether the console is in use. */
const SNAPSHOT_INTERVAL = 1_500
/** ms after a request for which the console counts as in use. */
const VIEWER_TIMEOUT = 60_000
/** ms; an older snapshot is from a worker that has ended. */
const SNAPSHOT_MAX_AGE = 6_000
const MAX_EXCHANGES = 500
/** ms between two updates of the file's modification time. */
const TOUCH_INTERVAL = 5_000

/** @param own the only key whose requests are included; null = all keys */
function activityOf({ sharedState, health, config, upstreams, accounts: { limiter } }: Gateway, own: string | null): WorkerActivity {
  const named = (name: string) => config.upstreams.has(name)
  const all: Exchange[] = []
  let streams = 0
  for (const exchange of sharedState.activeExchanges) {
    if (exchange.classified.endpoint.name === 'status') continue
    if (own !== null && exchange.identity.key?.name !== own) continue
    all.push(exchange)
    if (wantsEventStream(exchange)) streams++
  }
  all.sort((a, b) => a.startedAt - b.startedAt)
  return {
    running: all.length,
    streams,
    exchanges: all.slice(0, MAX_EXCHANGES).map(toLiveExchange),
    candidates: health.conditions().map(([id, condition]) => {
      const { circuit, opensIn, openForMs, inFlight, firstByteMs, consecutiveFailures } = condition
      const [upstream, model] = candidateOf(id)
      const opens = opensIn === Infinity || circuit === 'closed' ? null : opensIn
      return {
        upstream, model: model === '' ? null : model,
        circuit, opens_in_ms: opens, in_flight: inFlight, first_byte_ms: firstByteMs,
        open_since: openForMs === null ? null : isoTime(Date.now() - openForMs),
        consecutive_failures: consecutiveFailures,
        cause: health.causeOf(id),
      }
    }),
    credentialFailures: [...sharedState.credentialFailures].filter(([name]) => named(name)),
    upstreams: Array.from(upstreams.values(), ({ config: { name, limits }, credential }) => ({
      name,
      rateLimits: limits === null ? NO_RATE_LIMITS : limiter.rateLimitStates(limits, null),
      credentials: credential?.states() ?? [],
    })),
  }
}

function toLiveExchange(exchange: Exchange): Live['exchanges'][number] {
  const { id, startedWall, identity, request: { model }, servedBy, delivery, waiting } = exchange
  return {
    request_id: id, started_at: isoTime(startedWall), key: identity.key?.name ?? null,
    model, upstream: servedBy?.target.upstream.name ?? null, stream: wantsEventStream(exchange), bytes_out: delivery.bytes,
    waits_for: waiting && { scope: waiting.scope, limit: waiting.which as 'requests' | 'tokens' | 'concurrent', priority: waiting.priority },
  }
}

export interface WorkersOptions {
  readonly current: () => Gateway
  /** The number of this process, if there are several; null = there is one process. */
  readonly worker: number | null
  /** The file that all processes share; null = no file. */
  readonly file: string | null
  readonly store: ConsoleStoreClient
}

/**
 * Collects the activity of all workers. While the console is in use, each worker saves snapshots. Workers see from the file's modification
 * time whether the console is in use, so that they need not open the file.
 */
export class Workers {
  readonly #options: WorkersOptions
  #touchedAt = 0
  #timer: NodeJS.Timeout | null = null
  #closed = false

  constructor(options: WorkersOptions) {
    this.#options = options
    if (this.#hasPeers) this.#scheduleSnapshot()
  }

  /** The activity of all processes, this process first. @param own the only key whose requests are included; null = all keys */
  async all(own: string | null = null): Promise<WorkerActivity[]> {
    const { current, worker, store } = this.#options
    const here = activityOf(current(), own)
    if (!this.#hasPeers) return [here]
    await this.#touchFile()
    const now = Date.now()
    const others = await store.call('snapshots', now - SNAPSHOT_MAX_AGE, now + SNAPSHOT_MAX_AGE)
    return [here, ...others.filter(other => other.worker !== worker).map(({ data }) => JSON.parse(data) as WorkerActivity)
      .map(there => (own === null ? there : activityOfKey(there, own)))]
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  get #hasPeers(): boolean {
    return this.#options.worker !== null && this.#options.file !== null
  }

  async #touchFile(): Promise<void> {
    const now = Date.now()
    if (now - this.#touchedAt < TOUCH_INTERVAL) return
    this.#touchedAt = now
    await utimes(this.#options.file as string, new Date(now), new Date(now)).catch(ignore)
  }

  #scheduleSnapshot(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => void this.#saveSnapshotIfViewed().catch(ignore).finally(() => this.#scheduleSnapshot()), SNAPSHOT_INTERVAL).unref()
  }

  async #saveSnapshotIfViewed(): Promise<void> {
    const { file, worker, current, store } = this.#options
    const { mtimeMs } = await stat(file as string)
    if (Date.now() - mtimeMs > VIEWER_TIMEOUT || this.#closed) return
    const data = JSON.stringify(activityOf(current(), null))
    await store.call('saveSnapshot', { worker: worker as number, data }, Date.now())
  }
}

/** The part of a worker's activity that belongs to one key. Only exchanges in the snapshot are included. */
function activityOfKey(there: WorkerActivity, own: string): WorkerActivity {
  const exchanges = there.exchanges.filter(({ key }) => key === own)
  const streams = exchanges.filter(({ stream }) => stream).length
  return { ...there, exchanges, running: exchanges.length, streams }
}

/** Ignores a failed call: the file may not exist before the first use of the console, and a later call may succeed. */
function ignore(): void {}
