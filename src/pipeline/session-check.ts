import { GatewayError } from '../base/errors.ts'
import { isPaidByClient } from '../upstreams/attempt.ts'
import { ANONYMOUS_KEY } from './parts/accounts.ts'
import type { Exchange, Plan, Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { hasBudgetFor, limitsUse, type Holder } from './priceable.ts'
import { SessionReservations, type MessageCheck, type SessionRules } from './respond/session-reservations.ts'
import type { Admission } from '../limits/types.ts'
import { readMessageInfo } from '../protocols/endpoint/message-info.ts'
import type { SocketSession } from '../protocols/endpoint/protocol.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { checkOtherModel } from './admit.ts'
import { refusalError, unreadableBound } from './reserve.ts'
import { estimateResponse, isSessionPaidByClient, mayStartResponse, sessionOutput, tokensSent } from './session-estimate.ts'

/** Chooses how to check a session's messages: by the allowed models, by the price of the model under a budget, and by the key's limits. */
export function sessionRules(gateway: Gateway, exchange: Writes<'refusedBy'>, plan: Plan): SessionRules {
  const { identity, classified: { endpoint: { session } }, request } = exchange
  const { limits } = gateway.config
  if (session === null) return { check: null, reservations: null }
  const holder = identity.limited ?? ANONYMOUS_KEY
  const isBudgeted = !identity.unlimited && hasBudgetFor(holder, limits, request.model)
  const isLimited = !identity.unlimited && limitsUse(holder, limits, request.model)
  const checkModels = identity.restricted || isBudgeted ? modelCheck(gateway, exchange, plan, isBudgeted) : null
  const admission = isLimited ? new SessionAdmission(gateway, exchange, plan, session, holder) : null
  if (admission === null) return { check: checkModels && (message => { checkModels(message); return null }), reservations: null }
  const check: MessageCheck = message => {
    checkModels?.(message)
    return admission.admit(message)
  }
  return { check, reservations: admission.reservations }
}

function modelCheck(gateway: Gateway, exchange: Exchange, { reachable }: Plan, isBudgeted: boolean): (message: Buffer) => void {
  const { identity, startedWall } = exchange
  const { prices } = gateway.accounts
  const hasPrice = (model: string) => reachable.every(({ upstream }) =>
    isPaidByClient(upstream) || prices.priceOf(upstream.url, model, new Date(startedWall), model) !== null)
  return message => visitModels(message, { isKnown: true, skipsOwn: false }, ({ model, param }) => {
    if (identity.restricted) checkOtherModel(identity, model, param, false)
    if (isBudgeted && !isSessionPaidByClient(exchange) && (model === null || !hasPrice(model))) {
      throw new GatewayError('model_unpriced', `the key has a budget, and the model '${model ?? param}' has no price`, { param })
    }
  })
}

/** Reserves the estimated maximum of each response before the upstream gets the request. */
class SessionAdmission {
  readonly reservations = new SessionReservations()
  readonly #gateway: Gateway
  readonly #exchange: Writes<'refusedBy'>
  readonly #plan: Plan
  readonly #session: SocketSession
  readonly #holder: Holder
  /** Assumed output tokens of a response whose request does not bound them. */
  #assumed: number
  /** The model that the client named last. */
  #model: string | null

  constructor(gateway: Gateway, exchange: Writes<'refusedBy'>, plan: Plan, session: SocketSession, holder: Holder) {
    this.#gateway = gateway
    this.#exchange = exchange
    this.#plan = plan
    this.#session = session
    this.#holder = holder
    this.#assumed = gateway.config.billing.assumedOutput
    this.#model = exchange.request.model
  }

  /** @throws GatewayError budget_spent, rate_limited, model_unpriced, invalid_output_bound */
  admit(message: Buffer): Promise<void> | null {
    const { reservations } = this
    const { type, model, lane } = readMessageInfo(message, this.#session)
    this.#model = model ?? this.#model
    if (this.#session.createConversation !== null) {
      reservations.sentTokens += tokensSent(type, message)
      if (type === 'session.update') this.#applySettings(message)
      if (type !== 'response.create' && !(mayStartResponse(type) && reservations.open === 0)) return null
    } else if (type !== 'response.create') return null
    if (reservations.isFull) throw new GatewayError('rate_limited', 'too many responses at once in one session')
    const options = { model: this.#model, assumed: this.#assumed, reservations }
    const { fault, ...estimate } = estimateResponse(this.#gateway, this.#exchange, this.#plan, message, options)
    if (fault !== null) throw unreadableBound(fault)
    const { sentTokens } = reservations
    const enter = (admission: Admission): void => {
      if (!admission.ok) {
        reservations.refused()
        this.#exchange.refusedBy = admission.refusal.which
        throw refusalError(admission.refusal)
      }
      reservations.add(lane, { reservation: admission.reservation, sentTokens })
    }
    reservations.request()
    const admission = this.#gateway.accounts.limiter.admit({ key: this.#holder, model: this.#exchange.request.model ?? this.#model, estimate, isPart: true })
    if (admission instanceof Promise) return admission.then(enter)
    enter(admission)
    return null
  }

  #applySettings(message: Buffer): void {
    const { tokens, fault } = sessionOutput(this.#exchange, message, this.#assumed)
    if (fault !== null) throw unreadableBound(fault)
    this.#assumed = Math.max(this.#assumed, tokens)
  }
}
