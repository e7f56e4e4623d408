import { GatewayError } from '../base/errors.ts'
import { MAX_OBJECT_BYTES, objectBytes } from '../base/json-size.ts'
import { nextTurn } from '../base/next-turn.ts'
import type { EditRules } from '../config/edit-types.ts'
import type { HeaderChanges } from '../policy/edits/header-edits.ts'
import type { PolicyAction } from '../ledger/row.ts'
import { isRead, type Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { bodySteps } from '../policy/edits/edit-body.ts'
import type { EditSet } from '../policy/edits/edit-set.ts'
import { editHeaders, type HeaderValues } from '../policy/edits/header-edits.ts'
import { PROTOCOLS } from '../protocols/index.ts'
import { spliceBytes } from '../protocols/json/splice.ts'
import { acceptedBy, modelRules } from '../protocols/vendors/model-rules.ts'
import { replaceBody } from './replace-body.ts'

/** Bytes. Between the steps on a larger body, other requests have their turn. */
const LARGE_BODY = 1024 * 1024
const EDITED: PolicyAction = { rule: 'edit', action: 'edit', count: 1 }

/**
 * Changes the request as the operator's rules say, before anything is reserved for it.
 * @throws GatewayError body_too_large, overloaded
 */
export async function editRequest(gateway: Gateway, set: EditSet, exchange: Writes<'edits' | 'request' | 'policy'>): Promise<void> {
  const { identity, plan } = exchange
  if (plan === null) return
  const rules = set.of({ route: plan.route, key: identity.key, groups: identity.limited?.groups ?? [] })
  if (rules.length === 0) return
  if (rules.some(({ requestHeaders, responseHeaders }) => requestHeaders !== null || responseHeaders !== null)) {
    exchange.edits = headerChanges(rules, valuesOf(exchange))
  }
  const isOfBody = rules.some(({ body, system, cache }) => body !== null || system !== null || cache)
  if (isOfBody && !isRead(exchange)) await editRequestBody(gateway, rules, exchange)
}

function headerChanges(rules: readonly EditRules[], values: HeaderValues): HeaderChanges {
  return {
    onRequest: raw => editHeaders(raw, rules, 'requestHeaders', values),
    onResponse: raw => editHeaders(raw, rules, 'responseHeaders', values),
  }
}

function valuesOf({ id, identity, attributed }: Writes<never>): HeaderValues {
  const name = identity.key?.name ?? null
  const isCaller = identity.claims !== undefined || identity.key?.caller !== undefined
  return {
    key: isCaller ? null : name, caller: isCaller ? name : null, group: identity.limited?.groups?.[0]?.name ?? null, requestId: id,
    tags: new Map(Object.entries(attributed?.tags ?? {})),
  }
}

/** Batches and forms stay as they are. */
async function editRequestBody(gateway: Gateway, rules: readonly EditRules[], exchange: Writes<'request' | 'policy'>): Promise<void> {
  const { classified: { endpoint }, request: { body, model }, plan } = exchange
  if (body === null || body.json === null || body.json.root !== 'object' || endpoint.isBatch) return
  if (objectBytes(body.json.size) > MAX_OBJECT_BYTES) {
    throw new GatewayError('body_too_large', `the request has too many values to be changed by the operator's rules: ${body.json.size.values}`)
  }
  const protocol = PROTOCOLS.find(({ name }) => name === endpoint.protocol)
  const target = plan?.order[0]
  const isText = endpoint.metering === 'text' && endpoint.generatesTokens && endpoint.tokenCount === null
  const steps = bodySteps(rules, {
    endpoint, edits: (isText ? protocol?.edits : undefined) ?? null,
    usesOtherBound: target !== undefined
      && acceptedBy(modelRules(target.upstream, endpoint.protocol, target.model ?? model ?? '', model)).maxTokens === protocol?.edits?.otherOutputBound,
  })
  let { bytes } = body
  for (const step of steps) {
    bytes = spliceBytes(bytes, step(bytes))
    // A step can read and copy the whole body.
    if (bytes.length < LARGE_BODY) continue
    await nextTurn()
    exchange.throwIfStopped()
  }
  if (bytes === body.bytes) return
  replaceBody(gateway, exchange, [{ start: 0, end: body.bytes.length, bytes }])
  exchange.policy = [...exchange.policy ?? [], EDITED]
}
