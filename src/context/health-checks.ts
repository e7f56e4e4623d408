import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { GatewayError, causeOf } from '../base/errors.ts'
import { Attempt } from '../proxy/attempt.ts'
import type { AnswerSink } from '../proxy/attempt.ts'
import { Deadlines } from '../proxy/deadlines.ts'
import { headersUp } from '../proxy/headers.ts'
import type { ProxyServer } from '../proxy/http-proxy.ts'
import type { Health } from '../routing/health.ts'
import type { LiveUpstream } from './upstreams.ts'

export interface CheckParts {
  readonly clock: Clock
  readonly log: Logger
  readonly proxy: ProxyServer
  readonly health: Health
  newId(): string
}

/** Milliseconds that an answer to a check may take at most. */
const LONGEST = 10_000

/**
 * Active checks: asks each upstream that has a `health` whether it is well, again
 * and again, with the operator's credential. A 2xx is a yes, whatever its body.
 */
export class Checks {
  readonly #checks: readonly Check[]

  constructor(upstreams: Iterable<LiveUpstream>, parts: CheckParts) {
    this.#checks = Array.from(upstreams)
      .filter(({ config }) => config.health !== null)
      .map(upstream => new Check(upstream, parts))
  }

  start(): void {
    for (const check of this.#checks) check.start()
  }

  /** @param heirs names of upstreams that others go on to check: what is known of them stays known */
  stop(heirs: ReadonlySet<string> = new Set()): void {
    for (const check of this.#checks) check.stop(heirs.has(check.name))
  }
}

/** Of a check that failed, for the log. */
interface Trouble {
  readonly why: string
  /** Absent where nothing stood behind it. */
  readonly cause?: string | undefined
}

class Check {
  readonly #upstream: LiveUpstream
  readonly #parts: CheckParts
  #timer: Timer | null = null
  #attempt: Attempt | null = null
  #isWell = true
  #stopped = false

  constructor(upstream: LiveUpstream, parts: CheckParts) {
    this.#upstream = upstream
    this.#parts = parts
  }

  get name(): string {
    return this.#upstream.config.name
  }

  start(): void {
    // Those before may have told it already.
    this.#isWell = !this.#parts.health.failsChecks(this.name)
    void this.#ask()
  }

  stop(hasHeir: boolean): void {
    this.#stopped = true
    this.#timer?.cancel()
    if (!hasHeir) this.#parts.health.unchecked(this.name)
    this.#attempt?.abort(ENOUGH)
  }

  async #ask(): Promise<void> {
    const { health: config } = this.#upstream.config
    const trouble = await this.#outcome()
    if (this.#stopped || config === null) return
    if (trouble !== UNTOLD) this.#note(trouble)
    this.#timer = this.#parts.clock.setTimeout(() => void this.#ask(), config.every)
  }

  #note(trouble: Trouble | null): void {
    const { name } = this
    const { health, log } = this.#parts
    const isWell = health.checked(name, trouble === null)
    if (isWell === this.#isWell) return
    if (isWell) log.info({ upstream: name }, 'the upstream is well again')
    else log.warn({ upstream: name, ...trouble }, 'the upstream is not well')
    this.#isWell = isWell
  }

  /** @returns null when it is well; otherwise why it is not, or UNTOLD */
  async #outcome(): Promise<Trouble | typeof UNTOLD | null> {
    const { clock, proxy, newId } = this.#parts
    const { config, url, prefix, transport } = this.#upstream
    const limit = Math.min(LONGEST, Math.max(1_000, config.health?.every ?? 0))
    const timeouts = { connect: limit, firstByte: limit, idle: limit, total: limit }
    const sink = new StatusAlone()
    const deadlines = new Deadlines(clock, timeouts, clock.monotonic(), error => this.#attempt?.abort(error))
    const attempt = new Attempt({
      transport,
      upstreamUrl: url,
      request: {
        method: 'GET',
        path: prefix + (config.health?.path ?? '/'),
        headers: headersUp([], {
          upstream: config,
          requestId: newId(),
          httpVersion: '1.1',
          trustedPeer: null,
          identity: false,
          dropContentEncoding: false,
          contentLength: null,
        }),
        body: null,
      },
      deadlines,
      unpacks: false,
      sinkFor: () => sink,
    })
    this.#attempt = attempt
    const error = await attempt.run(proxy)
    deadlines.stop()
    if (error !== null && error !== ENOUGH) {
      return error.code === 'overloaded'
        ? UNTOLD
        : { why: `${error.code}: ${error.message}`, cause: causeOf(error) }
    }
    return sink.status >= 200 && sink.status < 300 ? null : { why: `status ${sink.status}` }
  }
}

/** Takes note of the status, and wants no more. */
class StatusAlone implements AnswerSink {
  status = 0

  head(status: number): GatewayError {
    this.status = status
    return ENOUGH
  }

  data(): boolean {
    return true
  }

  end(): void {}

  broken(): void {}
}

/** The gateway had no descriptor left, say, which tells nothing of the upstream. */
const UNTOLD = Symbol('untold')

const ENOUGH = new GatewayError('internal', 'a check has what it wants')
