import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { signatureHeaders } from '../../base/secrets/webhook-signature.ts'
import type { HookConfig } from '../../config/hook-types.ts'
import { ServiceCall, type ServiceReply } from '../../proxy/upstream/service-call.ts'
import { createTransport, type Transport } from '../../proxy/upstream/transport.ts'
import { withoutModel } from '../../routing/candidate.ts'
import type { Health } from '../../routing/health.ts'
import { CallQueue } from './call-queue.ts'
import { MAX_CALL_BYTES } from './hook-call.ts'
import { readReply, type AskedOf, type HookReply } from './hook-reply.ts'

/** Why a hook did not decide. `stopped`: the client disconnected. */
export type HookFailure =
  | 'timeout' | 'unreachable' | 'status' | 'invalid' | 'reply_too_large' | 'queue_full' | 'circuit_open' | 'call_too_large' | 'stopped'

export type HookOutcome = HookReply['action'] | HookFailure | 'dropped'

export type HookResult =
  | { readonly ok: true, readonly reply: HookReply }
  /** `detail`: for the operator. */
  | { readonly ok: false, readonly failure: HookFailure, readonly detail: string }

/** A call of a hook: what it asks, and the JSON that says so. */
export interface HookQuestion extends AskedOf {
  readonly requestId: string
  /** null = it would be too large. */
  readonly body: Buffer | null
}

export interface HookParts {
  readonly clock: Clock
  /** The circuits of all hooks. */
  readonly health: Health
  /** @param ms from the call to its outcome */
  readonly observe: (hook: string, on: AskedOf['on'], outcome: HookOutcome, ms: number) => void
}

/** Bytes of a reply at most, besides twice those of the call: a reply can repeat each text. */
const REPLY_BYTES = 64 * 1024

/** A service of the operator with its connections, queue and circuit. */
export class Hook {
  readonly config: HookConfig
  /** Identifies URL, roots and bounds: with an equal key, a reload keeps the hook. */
  readonly key: string
  readonly #parts: HookParts
  readonly #transport: Transport
  readonly #path: string
  readonly #queue: CallQueue

  /** @throws the system's error for a CA file that cannot be read */
  constructor(config: HookConfig, parts: HookParts) {
    const { origin, pathname, search } = new URL(config.url)
    this.config = config
    this.key = keyOf(config)
    this.#parts = parts
    this.#transport = createTransport({ origin, socketPath: null, connectTimeout: config.timeout, ca: config.ca, proxy: config.proxy })
    this.#path = pathname + search
    this.#queue = new CallQueue(config.concurrency)
  }

  /** Running and waiting calls. */
  get load(): { readonly running: number, readonly waiting: number } {
    return { running: this.#queue.running, waiting: this.#queue.waiting }
  }

  /** Asks the hook. Never rejects. @param onStoppable gets a function that ends the call early */
  async ask(question: HookQuestion, onStoppable: (stop: () => void) => void = () => undefined): Promise<HookResult> {
    const { clock, observe } = this.#parts
    const begin = clock.monotonic()
    const result = await this.#ask(question, begin, onStoppable)
    observe(this.config.name, question.on, result.ok ? result.reply.action : result.failure, clock.monotonic() - begin)
    return result
  }

  async #ask(question: HookQuestion, begin: number, onStoppable: (stop: () => void) => void): Promise<HookResult> {
    const { health, clock } = this.#parts
    const id = withoutModel(circuitName(this.config.name))
    const { body } = question
    if (body === null || body.length > MAX_CALL_BYTES) return failed('call_too_large', `the call has more than ${MAX_CALL_BYTES} bytes`)
    if (!health.allows(id)) return failed('circuit_open', health.causeOf(id).last?.reason ?? 'the service failed')
    const waited = await this.#waitForRoom(onStoppable)
    if (waited !== null) return waited
    try {
      // The circuit may have opened while the call waited.
      if (!health.allows(id)) return failed('circuit_open', health.causeOf(id).last?.reason ?? 'the service failed')
      const timeout = Math.max(1, this.config.timeout - (clock.monotonic() - begin))
      const record = { outcome: '' }
      const reporter = health.begin(id, { requestId: question.requestId, record })
      const call = this.#send(question, body, timeout)
      onStoppable(() => call.stop())
      const result = readResult(await call.reply, question)
      if (result.ok) {
        reporter.succeeded()
      } else if (result.failure === 'stopped') {
        reporter.abandoned()
      } else {
        record.outcome = `${result.failure}: ${result.detail}`
        reporter.failed(null)
      }
      return result
    } finally {
      this.#queue.leave()
    }
  }

  /** @returns null = the call may run; it must leave the queue */
  #waitForRoom(onStoppable: (stop: () => void) => void): Promise<HookResult | null> {
    const { promise, resolve } = Promise.withResolvers<HookResult | null>()
    let isStarted = false
    const give = this.#queue.enter(() => {
      isStarted = true
      resolve(null)
    })
    if (give === null) return Promise.resolve(failed('queue_full', `${this.#queue.waiting} calls wait already`))
    if (isStarted) return promise
    const giveUp = (result: HookResult) => {
      if (isStarted) return
      give()
      resolve(result)
    }
    const timer = this.#parts.clock.setTimeout(
      () => giveUp(failed('timeout', `no room for the call within ${this.config.timeout} ms`)), this.config.timeout,
    )
    onStoppable(() => giveUp(failed('stopped', 'the call was ended')))
    return promise.finally(() => timer.cancel())
  }

  #send({ on, requestId }: HookQuestion, body: Buffer, timeout: number): ServiceCall {
    const { name, secret } = this.config
    const headers = {
      'content-type': 'application/json', accept: 'application/json', 'user-agent': 'model-gateway',
      'x-gateway-hook': name, 'x-gateway-hook-version': '1', 'x-request-id': requestId,
      ...signatureHeaders(`${requestId}.${on}.${randomUUID()}`, this.#parts.clock.wall(), body, secret),
    }
    return new ServiceCall(this.#transport, {
      path: this.#path, headers: Object.entries(headers).flat(), body, timeout, maxReply: REPLY_BYTES + 2 * body.length,
    }, this.#parts.clock)
  }

  /** Finishes running calls, then closes the connections. */
  close(): void {
    void this.#transport.close()
  }

  /** Ends running calls, and closes the connections. */
  destroy(): Promise<void> {
    return this.#transport.destroy()
  }
}

/** The name of a hook among upstreams, in circuits, alerts and the console. */
export function circuitName(hook: string): string {
  return `hook ${hook}`
}

/** The key has the content of the CA file, because a replaced file needs new connections. */
export function keyOf({ ca, ...rest }: HookConfig): string {
  return JSON.stringify([rest, ca && readFileSync(ca, 'utf8')])
}

function readResult(reply: ServiceReply, asked: AskedOf): HookResult {
  if (!reply.ok) return failed(reply.why, reply.detail)
  const { status, body } = reply
  if (status !== 200 && status !== 204) {
    const isRedirect = status >= 300 && status < 400
    return failed('status', isRedirect ? `status ${status}: redirects are not followed` : `status ${status}`)
  }
  const read = readReply(status === 204 ? Buffer.alloc(0) : body, asked)
  return typeof read === 'string' ? failed('invalid', read) : { ok: true, reply: read }
}

function failed(failure: HookFailure, detail: string): HookResult & { ok: false } {
  return { ok: false, failure, detail }
}
