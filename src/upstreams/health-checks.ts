import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError, causeOf } from '../base/errors.ts'
import { Deadlines } from '../proxy/http/deadlines.ts'
import type { ProxyServer } from '../proxy/upstream/http-proxy.ts'
import type { ReadTurns } from '../proxy/http/read-turns.ts'
import type { ResponseHead } from '../proxy/upstream/response-head.ts'
import { UpstreamCall, type ResponseSink } from '../proxy/upstream/upstream-call.ts'
import type { Health } from '../routing/health.ts'
import { Attempt } from './attempt.ts'
import type { LiveUpstream } from './live-upstreams.ts'

export interface HealthCheckOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly proxy: ProxyServer
  readonly health: Health
  readonly readTurns: ReadTurns
  newId(): string
}

const MAX_CHECK_DURATION_MS = 10_000

/**
 * Sends a request with the operator's credential to each upstream that has `health`, at the configured interval. The check succeeds if the
 * status is 2xx.
 */
export class HealthChecks {
  readonly #checks: readonly HealthCheck[]

  constructor(upstreams: Iterable<LiveUpstream>, parts: HealthCheckOptions) {
    this.#checks = Array.from(upstreams).filter(({ config }) => config.health !== null).map(upstream => new HealthCheck(upstream, parts))
  }

  start(): void {
    for (const check of this.#checks) check.start()
  }

  /** @param stillChecked names of the upstreams whose results are kept, because a new configuration checks them too */
  stop(stillChecked: ReadonlySet<string> = new Set()): void {
    for (const check of this.#checks) check.stop(stillChecked.has(check.name))
  }
}

interface CheckFailure {
  readonly why: string
  /** The underlying error; absent = none. */
  readonly cause?: string | undefined
}

class HealthCheck {
  readonly #upstream: LiveUpstream
  readonly #parts: HealthCheckOptions
  #timer: Timer | null = null
  #call: UpstreamCall | null = null
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
    // Start from the result of the previous configuration's checks.
    this.#isHealthy = !this.#parts.health.failsChecks(this.name)
    void this.#run()
  }

  stop(keepsResult: boolean): void {
    this.#stopped = true
    this.#timer?.cancel()
    if (!keepsResult) this.#parts.health.clearChecks(this.name)
    this.#call?.abort(CHECK_DONE)
  }

  async #run(): Promise<void> {
    const { health: config } = this.#upstream.config
    const failure = await this.#outcome()
    if (this.#stopped || config === null) return
    if (failure !== INCONCLUSIVE) this.#recordResult(failure)
    this.#timer = this.#parts.clock.setTimeout(() => void this.#run(), config.every)
  }

  #recordResult(failure: CheckFailure | null): void {
    const { name } = this
    const { health, log } = this.#parts
    const isHealthy = health.recordCheck(name, failure === null, failure?.why)
    if (isHealthy === this.#isHealthy) return
    if (isHealthy) log.info({ upstream: name }, 'the upstream is healthy again')
    else log.warn({ upstream: name, ...failure }, 'the upstream is unhealthy')
    this.#isHealthy = isHealthy
  }

  /** null = healthy */
  async #outcome(): Promise<CheckFailure | typeof INCONCLUSIVE | null> {
    const { clock, proxy, newId, readTurns } = this.#parts
    const { config } = this.#upstream
    const limit = Math.min(MAX_CHECK_DURATION_MS, Math.max(1_000, config.health?.every ?? 0))
    const timeouts = { connect: limit, firstByte: limit, idle: limit, total: limit }
    const sink = new StatusSink()
    const deadlines = new Deadlines(clock, timeouts, clock.monotonic(), () => {
      // Replace the error, which names a setting under `timeouts` that does not apply to checks.
      this.#call?.abort(new GatewayError('total_timeout', `no response within ${limit / 1_000} s`))
    })
    const call = new UpstreamCall({
      upstream: this.#upstream,
      request: { method: 'GET', path: config.health?.path ?? '/', headers: [], body: null, source: { raw: [], requestId: newId() } },
      credential: new Attempt(this.#upstream, { purpose: ['health check'], key: null, choosesAccount: false, own: null }),
      client: null,
      deadlines, readTurns,
      decompresses: false,
      sink,
    })
    this.#call = call
    const error = await call.run(proxy)
    deadlines.stop()
    if (error !== null && error !== CHECK_DONE) {
      return error.code === 'overloaded' ? INCONCLUSIVE : { why: `${error.code}: ${error.message}`, cause: causeOf(error) }
    }
    return sink.status >= 200 && sink.status < 300 ? null : { why: `status ${sink.status}` }
  }
}

/** Reads the status, then ends the response. */
class StatusSink implements ResponseSink {
  status = 0

  head({ status }: ResponseHead): GatewayError {
    this.status = status
    return CHECK_DONE
  }

  data(): boolean {
    return true
  }

  end(): void {}

  broken(): void {}
}

/** The result of a check that failed inside the gateway, for example for lack of file descriptors. It does not change the health. */
const INCONCLUSIVE = Symbol('inconclusive')

const CHECK_DONE = new GatewayError('internal', 'the check is done')
