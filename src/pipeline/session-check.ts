import { GatewayError } from '../base/errors.ts'
import { ANONYMOUS_KEY } from './parts/accounts.ts'
import type { Exchange, Plan } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { hasBudgetFor } from './holder-limits.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { checkOtherModel } from './admit.ts'

/** Throws if the upstream must not get a message of the client. */
export type MessageCheck = (message: Buffer) => void

/**
 * Checks the messages of a WebSocket's client: a key with a list of models may name no other, and under a budget each
 * model needs a price.
 *
 * @returns null = no check is needed
 */
export function sessionCheck(gateway: Gateway, { identity, classified, request, startedWall }: Exchange, { reachable }: Plan): MessageCheck | null {
  const { limits } = gateway.config
  const isBudgeted = !identity.unlimited && hasBudgetFor(identity.limited ?? ANONYMOUS_KEY, limits, request.model)
  if (classified.endpoint.session === null || (!identity.restricted && !isBudgeted)) return null
  const { prices } = gateway.accounts
  const hasPrice = (model: string) => reachable.every(({ upstream: { url } }) => prices.priceOf(url, model, new Date(startedWall), model) !== null)
  return message => visitModels(message, { isKnown: true, skipsOwn: false }, ({ model, param }) => {
    if (identity.restricted) checkOtherModel(identity, model, param, false)
    if (isBudgeted && (model === null || !hasPrice(model))) {
      throw new GatewayError('model_unpriced', `the key has a budget, and the model '${model ?? param}' has no price`, { param })
    }
  })
}
