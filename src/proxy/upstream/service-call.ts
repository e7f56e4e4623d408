import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { isBrokenConnection, type Controller, type ResponseHandler, type Transport } from './transport.ts'

/** A request to a service of the operator. */
export interface ServiceRequest {
  readonly path: string
  /** Flat, as sent. */
  readonly headers: string[]
  readonly body: Buffer
  /** ms from the call to the end of the reply. */
  readonly timeout: number
  /** Bytes of the reply at most. */
  readonly maxReply: number
}

export type ServiceReply =
  | { readonly ok: true, readonly status: number, readonly body: Buffer }
  /** `detail`: for the operator. */
  | { readonly ok: false, readonly why: 'timeout' | 'unreachable' | 'reply_too_large' | 'stopped', readonly detail: string }

/** As in upstream-call.ts: with another code undici would also fail requests that wait for another connection. */
const ABORTED = Object.assign(new Error('the call was ended'), { code: 'UND_ERR_INFO' })

/**
 * A POST with a deadline and a bound on the reply, over the connections of a transport. Redirects are not followed. A request on a
 * kept-alive connection that breaks before the reply begins is sent once more.
 */
export class ServiceCall implements ResponseHandler {
  readonly reply: Promise<ServiceReply>
  readonly #transport: Transport
  readonly #request: ServiceRequest
  readonly #resolve: (reply: ServiceReply) => void
  readonly #timer: { cancel(): void }
  readonly #chunks: Buffer[] = []
  #controller: Controller | null = null
  #bytes = 0
  #status = 0
  #isFresh = true
  #isRetried = false
  #isOver = false

  constructor(transport: Transport, request: ServiceRequest, clock: Pick<Clock, 'setTimeout'>) {
    const { promise, resolve } = Promise.withResolvers<ServiceReply>()
    this.reply = promise
    this.#resolve = resolve
    this.#transport = transport
    this.#request = request
    this.#timer = clock.setTimeout(() => this.#fail('timeout', `no reply within ${request.timeout} ms`), request.timeout)
    this.#send()
  }

  stop(): void {
    this.#fail('stopped', 'the call was ended')
  }

  #send(): void {
    const { path, headers, body } = this.#request
    this.#transport.send({ method: 'POST', path, headers, body }, this)
  }

  onRequestStart(controller: Controller): void {
    this.#isFresh = this.#transport.fresh
    if (this.#isOver) controller.abort(ABORTED)
    else this.#controller = controller
  }

  onResponseStart(_controller: Controller, status: number): void {
    this.#status = status
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    if (this.#isOver) return
    this.#bytes += chunk.length
    const { maxReply } = this.#request
    if (this.#bytes > maxReply) this.#fail('reply_too_large', `the reply has more than ${maxReply} bytes`)
    // Copy the bytes, because a slice would keep its whole buffer in memory.
    else this.#chunks.push(Buffer.from(chunk))
  }

  onResponseEnd(): void {
    if (this.#transport.breaking) this.#fail('unreachable', 'the connection was closed before the reply was complete')
    else this.#end({ ok: true, status: this.#status, body: Buffer.concat(this.#chunks) })
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    // In a microtask, because undici accepts new requests only after it has failed all requests of the connection.
    queueMicrotask(() => {
      if (this.#isOver) return
      if (this.#isFresh || this.#isRetried || this.#status !== 0 || !isBrokenConnection(error)) {
        return this.#fail('unreachable', messageOf((error as Error).cause ?? error))
      }
      this.#isRetried = true
      this.#controller = null
      this.#send()
    })
  }

  #fail(why: (ServiceReply & { ok: false })['why'], detail: string): void {
    if (this.#isOver) return
    const controller = this.#controller
    this.#end({ ok: false, why, detail })
    controller?.abort(ABORTED)
  }

  #end(reply: ServiceReply): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#timer.cancel()
    this.#controller = null
    this.#chunks.length = 0
    this.#resolve(reply)
  }
}
