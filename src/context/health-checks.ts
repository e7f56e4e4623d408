import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError, causeOf } from '../base/errors.ts'
import { Attempt } from '../proxy/attempt.ts'
import type { ResponseSink } from '../proxy/attempt.ts'
import { Deadlines } from '../proxy/deadlines.ts'
import { upstreamHeaders } from '../proxy/headers.ts'
import type { ProxyServer } from '../proxy/http-proxy.ts'
import type { Health } from '../routing/health.ts'
import type { LiveUpstream } from './upstreams.ts'

export interface HealthCheckOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly proxy: ProxyServer
  readonly health: Health
  newId(): string
}

/** Milliseconds that an answer to a check may take at most. */
const MAX_CHECK_DURATION = 10_000

/**
 * Active checks: asks each upstream that has a `health` whether it is well, again
 * and again, with the operator's credential. A 2xx is a yes, whatever its body.
 */
export class HealthChecks {
  readonly #checks: readonly HealthCheck[]

  constructor(upstreams: Iterable<LiveUpstream>, parts: HealthCheckOptions) {
    this.#checks = Array.from(upstreams)
      .filter(({ config }) => config.health !== null)
      .map(upstream => new HealthCheck(upstream, parts))
  }

  start(): void {
    for (const check of this.#checks) check.start()
  }

  /** @param stillChecked names of upstreams that others go on to check: what is known of them stays known */
  stop(stillChecked: ReadonlySet<string> = new Set()): void {
    for (const check of this.#checks) check.stop(stillChecked.has(check.name))
  }
}

/** Of a check that failed, for the log. */
interface CheckFailure {
  readonly why: string
  /** Absent where nothing stood behind it. */
  readonly cause?: string | undefined
}

class HealthCheck {
  readonly #upstream: LiveUpstream
  readonly #parts: HealthCheckOptions
  #timer: Timer | null = null
  #attempt: Attempt | null = null
  #isHealthy = true
  #stopped = false

  constructor(upstream: LiveUpstream, parts: HealthCheckOptions) {
    this.#upstream = upstream
    this.#parts = parts
  }

  get name(): string {
    return this.#upstream.config.name
  }

  start(): void {
    // Those before may have told it already.
    this.#isHealthy = !this.#parts.health.failsChecks(this.name)
    void this.#run()
  }

  stop(keepsResult: boolean): void {
    this.#stopped = true
    this.#timer?.cancel()
    if (!keepsResult) this.#parts.health.clearChecks(this.name)
    this.#attempt?.abort(CHECK_DONE)
  }

  async #run(): Promise<void> {
    const { health: config } = this.#upstream.config
    const trouble = await this.#outcome()
    if (this.#stopped || config === null) return
    if (trouble !== INCONCLUSIVE) this.#recordResult(trouble)
    this.#timer = this.#parts.clock.setTimeout(() => void this.#run(), config.every)
  }

  #recordResult(trouble: CheckFailure | null): void {
    const { name } = this
    const { health, log } = this.#parts
    const isWell = health.recordCheck(name, trouble === null)
    if (isWell === this.#isHealthy) return
    if (isWell) log.info({ upstream: name }, 'the upstream is well again')
    else log.warn({ upstream: name, ...trouble }, 'the upstream is not well')
    this.#isHealthy = isWell
  }

  /** @returns null when it is well; otherwise why it is not, or UNTOLD */
  async #outcome(): Promise<CheckFailure | typeof INCONCLUSIVE | null> {
    const { clock, proxy, newId } = this.#parts
    const { config, url, transport } = this.#upstream
    const limit = Math.min(MAX_CHECK_DURATION, Math.max(1_000, config.health?.every ?? 0))
    const timeouts = { connect: limit, firstByte: limit, idle: limit, total: limit }
    const sink = new StatusSink()
    const deadlines = new Deadlines(clock, timeouts, clock.monotonic(), error => this.#attempt?.abort(error))
    const attempt = new Attempt({
      transport,
      upstreamUrl: url,
      request: {
        method: 'GET',
        path: config.health?.path ?? '/',
        headers: upstreamHeaders([], {
          upstream: config,
          requestId: newId(),
          httpVersion: '1.1',
          trustedPeer: null,
          uncompressed: false,
          dropContentEncoding: false,
          contentLength: null,
        }),
        body: null,
      },
      clientResponse: null,
      deadlines,
      decompresses: false,
      sinkFor: () => sink,
    })
    this.#attempt = attempt
    const error = await attempt.run(proxy)
    deadlines.stop()
    if (error !== null && error !== CHECK_DONE) {
      return error.code === 'overloaded'
        ? INCONCLUSIVE
        : { why: `${error.code}: ${error.message}`, cause: causeOf(error) }
    }
    return sink.status >= 200 && sink.status < 300 ? null : { why: `status ${sink.status}` }
  }
}

/** Takes note of the status, and wants no more. */
class StatusSink implements ResponseSink {
  status = 0

  head(status: number): GatewayError {
    this.status = status
    return CHECK_DONE
  }

  data(): boolean {
    return true
  }

  end(): void {}

  broken(): void {}
}

/** The gateway had no descriptor left, say, which tells nothing of the upstream. */
const INCONCLUSIVE = Symbol('untold')

const CHECK_DONE = new GatewayError('internal', 'a check has what it wants')
