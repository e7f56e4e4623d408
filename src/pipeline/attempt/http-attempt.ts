import { GatewayError, overloaded } from '../../base/errors.ts'
import { wantsEventStream, type Exchange, type Plan } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { NOT_DELIVERED, UpstreamAttempt, type ResponseContent, type UpstreamAttemptOptions } from '../exchange/upstream-attempt.ts'
import type { MeteredResponse } from '../../pricing/settle-usage.ts'
import type { Edit } from '../../protocols/json/splice.ts'
import type { CapsuleAccess } from '../../protocols/neutral/capsule.ts'
import type { Deadlines } from '../../proxy/http/deadlines.ts'
import type { ResponseHead } from '../../proxy/upstream/response-head.ts'
import { UpstreamCall } from '../../proxy/upstream/upstream-call.ts'
import { isCredentialRefused } from '../../routing/failure.ts'
import { AnyByteClassifier, classifierFor, type ResponseRequirements } from '../respond/response-classifier.ts'
import { ResponseGate, type GateOutlet } from '../respond/response-gate.ts'
import { NOTHING_HELD, createResponseStream, type HeldContent } from '../respond/response-stages.ts'
import type { ClientStream } from './client-stream.ts'
import { failureOfResponse, failureWithoutResponse, type AttemptFailure } from './attempt-failure.ts'
import { attemptOptions, missingOwnCredential } from './attempt-loop.ts'
import { outgoingRequest, providerRequest } from './outgoing-request.ts'
import { NO_REFUSAL_TARGETS } from './retry-plan.ts'

/** For responses that are held only to distinguish refused content from a rejected credential. */
const ERROR_REQUIREMENTS: ResponseRequirements = { reasons: NO_REFUSAL_TARGETS, whole: false, content: false }

export interface HttpAttemptOptions extends Pick<UpstreamAttemptOptions, 'target' | 'refused' | 'reservation'> {
  readonly deadlines: Deadlines
  readonly stream: ClientStream
  /** What a response must show before the client gets any of the response; null = it passes unchecked, because no attempt follows. */
  readonly requirements: ResponseRequirements | null
  readonly resume: Plan['route']['resume']
  readonly translate: Plan['route']['translate']
  /** Called before the response goes to the client. @returns false = the client gets another attempt's response; null = not hedged */
  readonly claim: ((attempt: HttpAttempt, status: number) => boolean) | null
  /** Edits of the request's body, after which the upstream generates only the rest of a response; null = request a whole response. */
  readonly continuationEdits: ((body: Buffer) => Edit[]) | null
}

/** @throws GatewayError, and begins no attempt, if the request cannot be made */
export function beginHttpAttempt(gateway: Gateway, exchange: Exchange, options: HttpAttemptOptions): HttpAttempt {
  const { target, translate, continuationEdits } = options
  const missing = missingOwnCredential(exchange, target)
  if (missing !== null) throw missing
  const startedAt = gateway.clock.monotonic()
  const live = gateway.targets.at(target, exchange.classified.endpoint, exchange.request.model)
  const trace = exchange.trace?.startAttempt() ?? []
  let translatedBytes = 0
  const reserve = (bytes: number): void => {
    if (!exchange.memory.reserve(bytes)) {
      throw overloaded('the bodies of running requests and the translated request use all of server.body_memory')
    }
    translatedBytes += bytes
  }
  const { request: native, sent } = outgoingRequest(
    gateway, exchange, live, translate, continuationEdits, trace, () => capsuleAccess(gateway, exchange, reserve),
  )
  const made = live.upstream.provider === null ? { request: native } : providerRequest(live.upstream, native, {
    endpoint: sent.translated?.endpoint ?? exchange.classified.endpoint,
    model: live.model,
    stream: sent.translated?.request.stream ?? exchange.request.stream,
  })
  if (sent.translated !== null) reserve((made.request.body as Buffer).length)
  const part = attemptOptions(gateway, exchange, { ...options, live, sent, startedAt })
  return new HttpAttempt(gateway, exchange, part, options, made, translatedBytes)
}

/** An attempt over HTTP. While another attempt can follow, the response is held until it is classified. */
export class HttpAttempt extends UpstreamAttempt implements GateOutlet {
  readonly path: string
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #options: HttpAttemptOptions
  readonly #call: UpstreamCall
  /** Bytes of the translated request and its capsules, counted in `server.body_memory`. */
  #translatedBytes: number
  /** null = no response head has arrived, or the response is not held. */
  #gate: ResponseGate | null = null
  #hasFailed = false

  constructor(
    gateway: Gateway, exchange: Exchange, part: UpstreamAttemptOptions, options: HttpAttemptOptions,
    { request, readResponse }: ReturnType<typeof providerRequest>, translatedBytes: number,
  ) {
    super(part)
    this.#gateway = gateway
    this.#exchange = exchange
    this.#options = options
    this.#translatedBytes = translatedBytes
    this.path = this.upstream.prefix + request.path
    this.#call = new UpstreamCall({
      upstream: this.upstream,
      request,
      credential: this,
      client: exchange,
      deadlines: options.deadlines,
      readTurns: gateway.sharedState.readTurns,
      ...readResponse && { readResponse },
      decompresses: this.translated !== null || (options.resume !== 'off' && wantsEventStream(exchange)),
      sink: this,
    })
    exchange.begin(this)
  }

  /** @returns null = the client gets the response */
  async run(): Promise<AttemptFailure | null> {
    const error = await this.#call.run(this.#gateway.proxy)
    if (error !== null) return failureWithoutResponse(error, this.#gateway.clock.wall())
    if (this.#gate === null) return null
    const rejected = await this.#gate.decision
    return rejected && failureOfResponse(rejected, this.#gateway.clock.wall())
  }

  /** No other attempt can follow. */
  get isLast(): boolean {
    return this.#options.requirements === null
  }

  /** Milliseconds from sending the request to the last bytes of the response, or to the failure of the attempt. */
  get waitedMs(): number {
    return this.#call.waitedMs
  }

  get mayBeBilled(): boolean {
    return this.#call.wasSent && (this.#gate?.status ?? 0) < 400
  }

  override get abandonedResponse(): MeteredResponse {
    return this.#gate?.abandoned ?? NOT_DELIVERED
  }

  override get held(): MeteredResponse | null {
    return this.#hasFailed ? null : this.#gate?.metered ?? null
  }

  override readHeld(): ResponseContent | null {
    const gate = this.#gate
    if (gate === null || gate.heldBody.length === 0) return null
    const stream = createResponseStream(this.#gateway, this.#exchange, this, gate.responseHead, null, ignoreFault)
    stream?.push(gate.heldBody)
    stream?.end()
    return stream
  }

  get missingEnd(): Buffer | null {
    return this.#gate?.missingEnd ?? null
  }

  get heldContent(): HeldContent {
    const gate = this.#gate
    if (gate === null) return NOTHING_HELD
    return this.translated ? { framed: null, body: gate.heldBody } : { framed: gate.framed, body: null }
  }

  override fail(abandoned: MeteredResponse | null): void {
    super.fail(abandoned)
    this.#hasFailed = true
    if (abandoned !== null) return
    super.releaseBody()
    this.#exchange.memory.release(this.#translatedBytes)
    this.#translatedBytes = 0
  }

  override releaseBody(): void {
    super.releaseBody()
    this.#call.releaseBody()
    this.#gate = null
  }

  abort(reason: GatewayError): void {
    this.#call.abort(reason)
  }

  stop(reason: GatewayError): void {
    this.#call.abort(reason)
    this.#gate?.stop(reason)
  }

  /** Gives the upstream a short time to end a response that the client has completely. */
  discardRest(): void {
    this.#call.discardRest(this.#gateway.clock)
  }

  head(head: ResponseHead): GatewayError | null {
    this.responded(head.status, head.headers)
    const { requirements, stream, deadlines } = this.#options
    // Without a further attempt too, a 401 or 403 may refuse the content, and a translated response must be translatable.
    const isRefused = head.status >= 400 && !this.refusesClient(head.status) && (isCredentialRefused(head.status) || this.isRefusal(head.status))
    const isRead = isRefused || this.translated !== null
    const required = requirements ?? (isRead ? ERROR_REQUIREMENTS : null)
    if (required === null) return this.pass(head)
    const classifier = classifierFor(this.#exchange, this, head, required, stream.relay.isWaiting)
    const gate = new ResponseGate(this.#gateway, this.#exchange, {
      outlet: this, classifier: classifier ?? new AnyByteClassifier(), head, deadlines, keepAlive: stream.keepAlive,
    })
    this.#gate = gate
    this.#call.handOver(gate)
    if (classifier === null) gate.passNow()
    return null
  }

  claim(status: number): boolean {
    return this.#options.claim?.(this, status) ?? true
  }

  pass(head: ResponseHead): GatewayError | null {
    const refusal = this.#options.stream.open(this, head, this.#call)
    if (refusal === null) this.#call.handOver(this)
    return refusal
  }

  get unsent(): number {
    return this.#options.stream.relay.unsent
  }

  data(chunk: Buffer): boolean {
    const { stream } = this.#options
    stream.begun(this)
    this.#call.handOver(stream.relay, true)
    return stream.relay.data(chunk)
  }

  end(): void {
    this.#options.stream.relay.end()
  }

  broken(error: GatewayError): void {
    this.#options.stream.relay.broken(error)
  }
}

function ignoreFault(): void {}

/** `server.body_limit` limits the sum of the body and the contents of its capsules. @param reserveMemory throws if memory is short */
function capsuleAccess(
  { config: { server: { bodyLimit } }, sharedState: { capsuleKeys } }: Gateway, { request: { body } }: Exchange,
  reserveMemory: (bytes: number) => void,
): CapsuleAccess {
  let left = bodyLimit - (body?.bytes.length ?? 0)
  return {
    keys: capsuleKeys.keys,
    reserve: bytes => {
      left -= bytes
      if (left < 0) throw new GatewayError('body_too_large', 'the body, with the thinking that its ids and signatures carry, is larger than server.body_limit')
      reserveMemory(bytes)
    },
  }
}
