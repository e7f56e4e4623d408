import { isPaidByClient } from '../upstreams/attempt.ts'
import type { Exchange, Plan } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import type { SessionReservations } from './respond/session-reservations.ts'
import type { Estimate } from '../limits/types.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { highestCost } from '../pricing/tier-price.ts'
import type { Endpoint } from '../protocols/endpoint/protocol.ts'
import { JsonCursor } from '../protocols/json/cursor.ts'
import type { ValidJson } from '../protocols/json/json-scan.ts'
import { jsonInspection } from '../protocols/request/inspect.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { readOutputBounds, type OutputBounds } from '../protocols/request/output-bounds.ts'
import { estimateRequest, estimateTokens, maxOutputTokens } from '../protocols/request/request-estimate.ts'
import { blankUsage } from '../protocols/usage/usage.ts'

export interface ResponseEstimate extends Estimate {
  /** The first member that should bound the output but is not a whole number from 0 on; null = none. */
  readonly fault: string | null
}

const UNBOUNDED: OutputBounds = { bound: null, other: 0, thinking: 0, responses: 1, fault: null }
const AUDIO = 'input_audio_buffer.append'
/** Base64 bytes of audio per token: a token is 100 ms, and G.711 has 8,000 bytes per second before base64. */
const BYTES_PER_AUDIO_TOKEN = 1_000
const EARLIER = [Buffer.from('previous_response_id'), Buffer.from('conversation')]
const RESPONSE = Buffer.from('response')

/** Tokens that a message of a realtime session adds to the conversation, at most. */
export function tokensSent(type: string, message: Buffer): number {
  const sound = Math.ceil(message.length / BYTES_PER_AUDIO_TOKEN)
  return type === AUDIO ? sound : Math.max(sound, estimateTokens(message))
}

/** @returns true = a message of this type can start a response without requesting it: with voice detection, audio can */
export function mayStartResponse(type: string): boolean {
  return type === AUDIO
}

/** Maximum output tokens of each response by the session's settings. @param assumed tokens if the settings do not bound the output */
export function sessionOutput({ classified: { endpoint } }: Exchange, message: Buffer, assumed: number): { readonly tokens: number, readonly fault: string | null } {
  const bounds = boundsOf(endpoint, message, inspected(message))
  return { tokens: maxOutputTokens(bounds, assumed), fault: bounds.fault }
}

/**
 * The highest usage of a response: its input is the request and everything before it in the session, its output is the allowed maximum,
 * and its price is the highest of the models that the request names.
 * @param model of the session; null = unknown @param assumed output tokens if the request does not bound them
 */
export function estimateResponse(
  gateway: Gateway, exchange: Exchange, plan: Plan, message: Buffer,
  { model, assumed, reservations }: { readonly model: string | null, readonly assumed: number, readonly reservations: SessionReservations },
): ResponseEstimate {
  const { classified: { endpoint } } = exchange
  const isConversation = endpoint.session?.createConversation !== null
  const json = inspected(message)
  const bounds = boundsOf(endpoint, message, json)
  const { contextTokens, unreadTokens } = reservations
  const own = isConversation ? { inputTokens: unreadTokens, mediaTokens: 0 } : inputOf(endpoint, message, json)
  const input = own.inputTokens + (isConversation || namesEarlier(message) ? contextTokens : 0)
  const outputTokens = maxOutputTokens(bounds, assumed)
  const usage = { ...blankUsage(), inputTokens: input, outputTokens }
  const usages = isConversation ? [usage, { ...usage, inputAudioTokens: input }] : [{ ...usage, inputImageTokens: own.mediaTokens || null }]
  const quotes = quotesOf(gateway, exchange, plan, message, model)
  const pico = isSessionPaidByClient(exchange) ? 0n : quotes.length === 0 ? null : highestCost(usages, quotes)
  return { tokens: Math.max(1, input + outputTokens), pico, fault: bounds.fault }
}

/** A session has one target, which is known when a message comes. */
export function isSessionPaidByClient({ servedBy }: Exchange): boolean {
  return servedBy !== null && isPaidByClient(servedBy.target.upstream)
}

/** @returns null = not JSON */
function inspected(message: Buffer): ValidJson | null {
  const scan = jsonInspection()
  scan.push(message)
  const json = scan.end()
  return json.ok ? json : null
}

function boundsOf(endpoint: Endpoint, message: Buffer, json: ValidJson | null): OutputBounds {
  return json === null ? UNBOUNDED : readOutputBounds(endpoint, message, json.fields)
}

function inputOf(endpoint: Endpoint, message: Buffer, json: ValidJson | null): { readonly inputTokens: number, readonly mediaTokens: number } {
  const { inputTokens, mediaTokens } = estimateRequest(endpoint, message, json)
  return { inputTokens: inputTokens ?? estimateTokens(message), mediaTokens }
}

/** @returns true = the request, or the `response` in it, names an earlier response or conversation */
function namesEarlier(message: Buffer): boolean {
  const cursor = new JsonCursor(message)
  if (!cursor.beginObject()) return false
  while (cursor.nextMember()) {
    if (EARLIER.some(name => cursor.keyIs(name))) return true
    const isResponse = cursor.keyIs(RESPONSE)
    if (!cursor.skip()) return false
    if (!isResponse) continue
    const inner = new JsonCursor(message, cursor.valueStart, cursor.valueEnd)
    if (!inner.beginObject()) continue
    while (inner.nextMember()) {
      if (EARLIER.some(name => inner.keyIs(name))) return true
      if (!inner.skip()) break
    }
  }
  return false
}

/** Prices of the session's model, and of the models that the message names, at each target that the operator pays. */
function quotesOf(gateway: Gateway, exchange: Exchange, { reachable }: Plan, message: Buffer, model: string | null): (QuotedPrice | null)[] {
  const { request: { model: alias }, classified: { endpoint }, startedWall } = exchange
  const isConversation = endpoint.session?.createConversation !== null
  const names = new Set<string | null>()
  visitModels(message, { isKnown: true, skipsOwn: isConversation }, ({ model: named }) => void names.add(named))
  if (!isConversation && names.size === 0 && model !== null) names.add(model)
  const at = new Date(startedWall)
  const { prices } = gateway.accounts
  return reachable.filter(({ upstream }) => !isPaidByClient(upstream)).flatMap(({ upstream: { url }, model: renamed }) => {
    const own = isConversation ? renamed ?? alias ?? model : null
    const named = [...names].map(name => name === null ? null : prices.priceOf(url, name, at, name))
    return own === null ? named : [prices.priceOf(url, own, at, alias ?? own), ...named]
  })
}
