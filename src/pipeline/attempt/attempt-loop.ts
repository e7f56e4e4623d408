import { GatewayError, upstreamRateLimited } from '../../base/errors.ts'
import { nextTurn } from '../../base/next-turn.ts'
import { isPaidByClient } from '../../upstreams/attempt.ts'
import type { Target, UpstreamLimits } from '../../config/types.ts'
import { quote, type Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { writeCheckpoint } from '../parts/ledger-checkpoint.ts'
import type { AttemptDraft, UpstreamAttempt, UpstreamAttemptOptions } from '../exchange/upstream-attempt.ts'
import type { Authorization } from '../../upstreams/credentials/credential.ts'
import type { Reservation } from '../../limits/types.ts'
import { ACCOUNT_CHOICE_HEADERS, GATEWAY_KEY_HEADER, OWN_CREDENTIAL_HEADERS } from '../../protocols/http/vendor-headers.ts'
import type { RetryStep } from '../../routing/retry-policy.ts'
import type { LiveTarget } from '../../upstreams/live-targets.ts'
import type { RefusedRequest } from '../parts/wait-for-room.ts'
import { failureWithoutResponse, type AttemptFailure } from './attempt-failure.ts'
import { otherCredential, type AttemptRecorder } from './recorder.ts'

/** Bytes. A larger request waits for the next turn of the event loop before each attempt, because writing its body delays others. */
const LARGE_BODY = 256 * 1024
const NONE_REFUSED: readonly Authorization[] = []
/** Milliseconds for retry-after if the request is larger than the limit, so that waiting does not help. */
const DEFAULT_WAIT = 60_000

export type AttemptOutcome<A extends UpstreamAttempt, End> =
  /** The response went to the client, complete or not. */
  | { readonly kind: 'ended', readonly end: End }
  | { readonly kind: 'failed', readonly attempt: A, readonly failure: AttemptFailure, readonly isLast: boolean }
  /** Another attempt continues the response, whose beginning the client got. */
  | { readonly kind: 'interrupted', readonly attempt: A, readonly failure: AttemptFailure, readonly step: RetryStep }

/** A target that was skipped because its upstream is at its limit. */
export type RefusedTarget = RefusedRequest & { readonly target: Target }

export interface WaitedTarget {
  readonly target: Target
  readonly reservation: Reservation
}

export interface TargetPlan {
  /** The target of the running attempt or, before any attempt, of the first attempt. */
  readonly current: Target
  /** @returns null = no attempt follows */
  next(failure: AttemptFailure, isContinuation: boolean): RetryStep | null
  /** Skips the current target, whose upstream is at its limit. @returns null = there is no other target */
  passOver(isContinuation: boolean): RetryStep | null
}

/** Makes the attempts over HTTP or over a WebSocket. */
export interface AttemptCarrier<A extends UpstreamAttempt, End> {
  /** The next attempt continues a stream that broke after the client got its beginning. */
  readonly isContinuation: boolean
  /** Ends the exchange without an attempt at the target; null = make the attempt. */
  endBefore(target: Target): End | null
  /** @param refused credentials that the target refused for this request @returns the error if the request cannot be made for the target */
  begin(target: Target, refused: readonly Authorization[], reservation: Reservation | null): A | GatewayError
  carry(attempt: A): Promise<AttemptOutcome<A, End>>
  /** Waits until an upstream at its limit has room; null = the request does not wait, or there was no room. */
  waitForTarget(refused: readonly RefusedTarget[]): Promise<WaitedTarget | null>
  /** Called if no further attempt follows. @throws GatewayError if the client gets nothing from an upstream */
  giveUp(failure: AttemptFailure): Promise<End>
}

export class AttemptLoop<A extends UpstreamAttempt, End> {
  readonly #gateway: Gateway
  readonly #exchange: Exchange
  readonly #plan: TargetPlan
  readonly #recorder: AttemptRecorder
  /** The error with the shortest retry-after among those of upstreams at their limit. */
  #full: GatewayError | null = null
  /** The last refusals of upstreams at their limit. */
  readonly #refused = new Map<UpstreamLimits, RefusedRequest>()
  #cancelWait: (() => void) | null = null

  constructor(gateway: Gateway, exchange: Exchange, plan: TargetPlan, recorder: AttemptRecorder) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#plan = plan
    this.#recorder = recorder
  }

  async run(carrier: AttemptCarrier<A, End>): Promise<End> {
    let target = this.#plan.current
    let refused = NONE_REFUSED
    let held: Reservation | null = null
    const passedOver: Target[] = []
    const isLarge = (this.#exchange.request.body?.bytes.length ?? 0) > LARGE_BODY
    for (;;) {
      if (isLarge) {
        await nextTurn()
        this.#exchange.throwIfStopped()
      }
      const end = carrier.endBefore(target)
      if (end !== null) return end
      const reservation: Reservation | GatewayError | null = held ?? (target.upstream.limits && await this.reserve(target.upstream.limits))
      held = null
      if (reservation instanceof GatewayError) {
        if (!passedOver.includes(target)) passedOver.push(target)
        const next: RetryStep | WaitedTarget | null = this.#passOver(target, reservation, carrier.isContinuation) ?? await this.#wait(carrier, passedOver)
        if (next === null) return carrier.giveUp(this.#failure(this.#full ?? reservation))
        target = next.target
        if ('reservation' in next) held = next.reservation
        refused = NONE_REFUSED
        continue
      }
      const withCredentials = refused
      const attempt = this.begin(() => carrier.begin(target, withCredentials, reservation), reservation)
      const outcome = attempt instanceof GatewayError
        ? { kind: 'unsent', failure: this.#failure(attempt) } as const
        : await carrier.carry(attempt)
      if (outcome.kind === 'ended') return outcome.end
      if (outcome.kind === 'failed') {
        const { failure, isLast } = outcome
        const others = otherCredential(outcome.attempt, failure)
        this.#recorder.failed(outcome.attempt, failure, { isRetried: others !== null, isLast, isContinuation: carrier.isContinuation })
        this.#exchange.throwIfStopped()
        if (others !== null) {
          this.#recorder.logRetry(outcome.attempt, { target, delayMs: 0 })
          refused = others
          continue
        }
      }
      const step = outcome.kind === 'interrupted' ? outcome.step : this.#plan.next(outcome.failure, carrier.isContinuation)
      if (step === null) return carrier.giveUp(outcome.failure)
      if (outcome.kind !== 'unsent') {
        this.#recorder.logRetry(outcome.attempt, step)
        if (step.delayMs > 0) await this.#pause(step.delayMs)
        this.#exchange.throwIfStopped()
      }
      target = step.target
      refused = NONE_REFUSED
    }
  }

  /** @returns an error, and begins no attempt, if the request cannot be made for the target */
  begin(create: () => A | GatewayError, reservation: Reservation | null): A | GatewayError {
    const isFirst = this.#exchange.attempts.length === 0
    let begun: A | GatewayError | null = null
    try {
      begun = create()
    } finally {
      if (begun === null || begun instanceof GatewayError) reservation?.release()
    }
    // If the process dies, the ledger row shows this attempt.
    if (!isFirst && !(begun instanceof GatewayError)) writeCheckpoint(this.#gateway, this.#exchange)
    return begun
  }

  /** @returns an error, and reserves nothing, if the limits have no room */
  async reserve(key: UpstreamLimits): Promise<Reservation | GatewayError> {
    const estimate = { tokens: this.#exchange.reserved?.tokens ?? 0, pico: 0n }
    const request = { key, model: null, estimate }
    const admission = await this.#gateway.accounts.limiter.admit(request)
    if (admission.ok) {
      if (this.#exchange.stopped !== null) admission.reservation.release()
      this.#exchange.throwIfStopped()
      return admission.reservation
    }
    this.#refused.set(key, { request, refusal: admission.refusal })
    const { which, message, retryAfterMs } = admission.refusal
    return which === 'unavailable' ? new GatewayError('limits_unavailable', message) : upstreamRateLimited(retryAfterMs ?? DEFAULT_WAIT)
  }

  cancelWait(): void {
    this.#cancelWait?.()
  }

  /** @returns null = there is no other target */
  #passOver({ upstream }: Target, error: GatewayError, isContinuation: boolean): RetryStep | null {
    if (this.#full === null || Number(error.headers['retry-after']) < Number(this.#full.headers['retry-after'])) this.#full = error
    const step = this.#plan.passOver(isContinuation)
    this.#recorder.logPassedOver(upstream.name, step)
    return step
  }

  /** @param passedOver the targets whose upstreams are at their limits */
  #wait(carrier: AttemptCarrier<A, End>, passedOver: readonly Target[]): Promise<WaitedTarget | null> {
    const refused = passedOver.flatMap(target => {
      const found = target.upstream.limits && this.#refused.get(target.upstream.limits)
      return found ? [{ ...found, target }] : []
    })
    return carrier.waitForTarget(refused)
  }

  #failure(error: GatewayError): AttemptFailure {
    return failureWithoutResponse(error, this.#gateway.clock.wall())
  }

  /** Resolves after `ms`, or at once when the exchange is stopped. */
  #pause(ms: number): Promise<void> {
    this.#recorder.waitedMs += ms
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#gateway.clock.setTimeout(resolve, ms)
    this.#cancelWait = () => {
      timer.cancel()
      resolve()
    }
    return promise
  }
}

/** @returns own_credential_required if the target is used with the client's own credential, and the request has none */
export function missingOwnCredential({ credentials }: Exchange, { upstream }: Target): GatewayError | null {
  if (!isPaidByClient(upstream) || (credentials !== null && credentials.own.length > 0)) return null
  const names = `${OWN_CREDENTIAL_HEADERS.slice(0, -1).join(', ')} or ${OWN_CREDENTIAL_HEADERS.at(-1)}`
  return new GatewayError(
    'own_credential_required',
    `this model is used with your own credential: send the key of the gateway in ${GATEWAY_KEY_HEADER}, and your credential for the provider in ${names}`,
    { headers: { 'x-should-retry': 'false', 'www-authenticate': 'Bearer' } },
  )
}

/** The options that all attempts of an exchange share, over HTTP or a WebSocket. */
export function attemptOptions(
  gateway: Gateway, exchange: Exchange, { target, live, refused, reservation, sent, startedAt }:
  Pick<UpstreamAttemptOptions, 'target' | 'refused' | 'reservation' | 'sent' | 'startedAt'> & { readonly live: LiveTarget },
): UpstreamAttemptOptions {
  const { id, identity, req, credentials } = exchange
  const { translated, dropped } = sent
  const own = credentials !== null && isPaidByClient(target.upstream) ? credentials.own : null
  const record: AttemptDraft = {
    upstream: target.upstream.name,
    model: live.model,
    ...translated && { translated: `${translated.translator.from}->${translated.translator.to}` },
    ...dropped.length > 0 && { dropped },
    ...own !== null && { billed: 'client' as const },
    outcome: 'ok',
    ms: 0,
    atMs: startedAt - exchange.startedAt,
  }
  return {
    target, upstream: live.upstream, refused, reservation, sent, record, startedAt,
    ownInput: exchange.reserved?.estimatedInput ?? null,
    use: {
      purpose: live.purpose,
      key: identity.key?.name ?? null,
      choosesAccount: ACCOUNT_CHOICE_HEADERS.some(name => req.headers[name] !== undefined),
      own,
    },
    quoted: exchange.attempts.length === 0 ? exchange.quoted : quote(gateway.accounts.prices, exchange, target),
    health: gateway.health.begin(live.candidate, { requestId: id, record }),
    clock: gateway.clock,
  }
}
