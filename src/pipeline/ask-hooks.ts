import { GatewayError, asGatewayError, overloaded, upgradeRequired } from '../base/errors.ts'
import { isRead, type Writes } from './exchange/exchange.ts'
import { requestFacts } from './exchange/request-facts.ts'
import type { Gateway } from './parts/gateway.ts'
import { callBody, contentFor } from '../policy/hooks/hook-call.ts'
import type { HookReply } from '../policy/hooks/hook-reply.ts'
import type { HookSet, LiveHook } from '../policy/hooks/hook-set.ts'
import { textEdits, type RequestText } from '../protocols/request/request-texts.ts'
import { memberEdits } from '../protocols/json/member-edits.ts'
import { attributeWithHooks } from './attribute.ts'
import { replaceBody } from './replace-body.ts'
import type { Route } from '../config/types.ts'

/** A call takes this many bytes for each byte of the body: the body in JSON, and a copy while it is masked. */
const BYTES_PER_BODY_BYTE = 2

/**
 * Asks the hooks of the request one after the other, the more general first. Adds their tags, and changes the body as they say. Taps are
 * kept for `settle`.
 * @param isUpgrade the request is a handshake: hooks that need a body cannot decide about it
 * @throws GatewayError policy_refused, policy_unavailable, attribution_required, upgrade_required
 */
export async function askHooks(
  gateway: Gateway, set: HookSet, exchange: Writes<'hooks' | 'attributed' | 'request' | 'policy'>, route: Route, isUpgrade = false,
): Promise<void> {
  const { identity } = exchange
  const hooks = isRead(exchange) && !isUpgrade ? [] : set.of({ route, key: identity.key, groups: identity.limited?.groups ?? [] })
  if (hooks.length > 0) exchange.hooks = hooks
  const tags = new Map<string, string>()
  for (const live of hooks) {
    const { config } = live.hook
    if (config.tap || !config.onRequest) continue
    if (isUpgrade && config.send !== 'metadata') throw upgradeRequired('a rule of the operator checks requests, and cannot read WebSockets; use plain HTTP')
    const answer = await askHook(exchange, live)
    if (answer === null) {
      note(exchange, config.name, 'unchecked')
      continue
    }
    const { reply } = answer
    if (reply.action === 'refuse') {
      note(exchange, config.name, 'refuse')
      throw refused(config.name, reply.message)
    }
    if (reply.action === 'tag') note(exchange, config.name, 'tag', reply.tags.size)
    for (const [name, value] of reply.tags) tags.set(name, value)
    noteUnread(gateway, live, reply.tags)
    if (reply.action === 'replace') replace(gateway, exchange, live, answer)
  }
  if (gateway.attribution !== null) attributeWithHooks(gateway.attribution, exchange, tags)
}

/** What a hook decided, and the places of the texts that it was sent. */
interface Answer {
  readonly reply: HookReply
  readonly places: ReadonlyMap<string, RequestText>
}

/** @returns null = the hook is down, and requests pass then @throws GatewayError policy_unavailable, overloaded */
async function askHook(exchange: Writes<'policy'>, { hook, failures }: LiveHook): Promise<Answer | null> {
  const { config } = hook
  const { body } = exchange.request
  const reserved = (config.send !== 'metadata' && body?.json ? body.bytes.length : 0) * BYTES_PER_BODY_BYTE
  if (reserved > 0 && !exchange.memory.reserve(reserved)) throw overloaded('the bodies of running requests use all of server.body_memory')
  try {
    const content = contentFor(config, body?.json ? body.bytes : null)
    const places = new Map(content?.places?.map(place => [place.id, place]))
    const question = {
      on: 'request' as const, ids: new Set(places.keys()), replaces: body?.json?.root === 'object', requestId: exchange.id,
      body: content && callBody(config, requestFacts(exchange), null, content),
    }
    const result = await hook.ask(question, stop => exchange.stopBy({ stop }))
    exchange.throwIfStopped()
    if (result.ok) return { reply: result.reply, places }
    failures.note(`${result.failure}: ${result.detail}`)
    if (config.whenDown === 'allow') return null
    note(exchange, config.name, 'unavailable')
    throw unavailable(config.name)
  } finally {
    exchange.stopBy(null)
    if (reserved > 0) exchange.memory.release(reserved)
  }
}

/** `unchecked`: the hook is down, and the request passes; `unavailable`: it is down, and the request is refused. */
function note(exchange: Writes<'policy'>, rule: string, action: HookReply['action'] | 'unchecked' | 'unavailable', count = 1): void {
  exchange.policy = [...exchange.policy ?? [], { rule, action, count }]
}

/** @throws GatewayError policy_unavailable, overloaded */
function replace(gateway: Gateway, exchange: Writes<'request' | 'policy'>, { hook: { config }, failures }: LiveHook, { reply, places }: Answer): void {
  const bytes = exchange.request.body?.bytes ?? Buffer.alloc(0)
  try {
    replaceBody(gateway, exchange, [...memberEdits(bytes, reply.parameters), ...textEdits(places, reply.texts)])
    note(exchange, config.name, 'replace', reply.parameters.size + reply.texts.size)
  } catch (error) {
    // A RangeError: a parameter and a text in it are both replaced.
    const { code, message } = error instanceof RangeError ? { code: null, message: error.message } : asGatewayError(error)
    if (code === 'overloaded' || code === 'internal') throw error
    // The client's own body was valid, so the reply is not.
    failures.note(`invalid: ${message}`)
    note(exchange, config.name, config.whenDown === 'refuse' ? 'unavailable' : 'unchecked')
    if (config.whenDown === 'refuse') throw unavailable(config.name)
  }
}

function refused(rule: string, message: string | null): GatewayError {
  return new GatewayError('policy_refused', `${message ?? 'the request was refused'} (rule '${rule}')`)
}

function unavailable(rule: string): GatewayError {
  return new GatewayError('policy_unavailable', `the request could not be checked (rule '${rule}'); try again later`, { headers: { 'retry-after': '1' } })
}

function noteUnread({ attribution }: Gateway, { failures }: LiveHook, tags: ReadonlyMap<string, string>): void {
  const unread = attribution === null ? [...tags.keys()] : attribution.unread(tags)
  if (unread.length > 0) failures.note(`ignored tags: ${unread.join(', ')}: name hook among their sources under attribution`)
}
