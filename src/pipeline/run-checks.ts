import { GatewayError, overloaded, upgradeRequired } from '../base/errors.ts'
import { nextTurn } from '../base/next-turn.ts'
import type { Route } from '../config/types.ts'
import type { Check, CheckSet } from '../policy/checks/check-set.ts'
import { Marks } from '../policy/checks/marks.ts'
import type { Span } from '../policy/checks/span.ts'
import { requestTexts, textEdits, textOf, MAX_TEXTS, type RequestText } from '../protocols/request/request-texts.ts'
import { isRead, type Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { replaceBody } from './replace-body.ts'

/** A check takes this many bytes for each byte of the body: a text, and the same text while it is masked. */
const BYTES_PER_BODY_BYTE = 2
/** Characters in front of a match that decide whether it is one. */
const CONTEXT = 100
/** Characters of a match at most. */
const MAX_MATCH = 32 * 1024
/** After this many bytes, other requests have their turn. */
const BYTES_PER_TURN = 128 * 1024

/**
 * Runs the checks of a request one after the other, the more general first, and masks what they find.
 * @param isUpgrade the request is a handshake: checks cannot read a WebSocket
 * @throws GatewayError policy_refused, upgrade_required, overloaded, body_too_large
 */
export async function runChecks(
  gateway: Gateway, set: CheckSet, exchange: Writes<'request' | 'policy'>, route: Route, isUpgrade = false,
): Promise<void> {
  const { identity } = exchange
  if (isRead(exchange) && !isUpgrade) return
  const checks = set.of({ route, key: identity.key, groups: identity.limited?.groups ?? [] })
  if (checks.length === 0) return
  if (isUpgrade) throw upgradeRequired('a rule of the operator checks requests, and cannot read WebSockets; use plain HTTP')
  const marks = new Marks()
  for (const check of checks) {
    const { body } = exchange.request
    if (body === null) continue
    if (body.json === null) note(gateway, exchange, check, 'unchecked', 1)
    else if (check.size !== null) await checkSize(gateway, exchange, check, check.size)
    else await search(gateway, exchange, check, marks)
  }
}

/** @throws GatewayError policy_refused */
async function checkSize(gateway: Gateway, exchange: Writes<'policy'>, check: Check, size: number): Promise<void> {
  const { classified: { endpoint: { prompt } }, request: { body } } = exchange
  // A token has at least one byte, so most prompts need not be counted.
  if (body === null || body.bytes.length <= size) return
  const tokens = await gateway.accounts.counter.prompt(prompt, body.bytes)
  exchange.throwIfStopped()
  if (tokens === null || tokens <= size) return
  note(gateway, exchange, check, check.action, 1)
  if (check.action === 'refuse') throw refused(check, `the prompt has ${tokens} tokens, and the rule allows ${size}`)
}

/** @throws GatewayError policy_refused, overloaded, body_too_large */
async function search(gateway: Gateway, exchange: Writes<'request' | 'policy'>, check: Check, marks: Marks): Promise<void> {
  const bytes = exchange.request.body?.bytes ?? Buffer.alloc(0)
  const reserved = bytes.length * BYTES_PER_BODY_BYTE
  if (!exchange.memory.reserve(reserved)) throw overloaded('the bodies of running requests use all of server.body_memory')
  try {
    const places = requestTexts(bytes)
    if (places === null) {
      note(gateway, exchange, check, check.action === 'log' ? 'unchecked' : 'refuse', 1)
      if (check.action !== 'log') throw refused(check, `the request has more than ${MAX_TEXTS} texts, which cannot be checked`)
      return
    }
    const { count, labels, masked } = await findIn(exchange, bytes, places, check, marks)
    if (count === 0) return
    note(gateway, exchange, check, check.action, count)
    if (check.action === 'refuse') throw refused(check, `the texts of the request have what the rule forbids: ${[...labels].join(', ').toLowerCase()}`)
    if (check.action === 'mask') replaceBody(gateway, exchange, textEdits(new Map(places.map(place => [place.id, place])), masked))
  } finally {
    exchange.memory.release(reserved)
  }
}

interface Found {
  readonly count: number
  readonly labels: ReadonlySet<string>
  /** New texts by id. */
  readonly masked: ReadonlyMap<string, string>
}

async function findIn(
  exchange: Writes<'policy'>, bytes: Buffer, places: readonly RequestText[], check: Check, marks: Marks,
): Promise<Found> {
  const labels = new Set<string>()
  const masked = new Map<string, string>()
  let count = 0
  let read = 0
  for (const place of places) {
    const text = textOf(bytes, place)
    const spans = text.length <= BYTES_PER_TURN ? check.find(text) : await findInLong(exchange, text, check)
    for (const { label } of spans) labels.add(label)
    count += spans.length
    if (spans.length > 0 && check.action === 'mask') masked.set(place.id, marks.mask(text, spans))
    read += place.end - place.start
    if (read < BYTES_PER_TURN) continue
    read = 0
    await nextTurn()
    exchange.throwIfStopped()
  }
  return { count, labels, masked }
}

/** Searches a long text in parts, so that other requests have their turn. */
async function findInLong(exchange: Writes<'policy'>, text: string, check: Check): Promise<Span[]> {
  const spans: Span[] = []
  for (let from = 0; from < text.length; from += BYTES_PER_TURN) {
    const start = Math.max(0, from - CONTEXT)
    const end = spans.at(-1)?.end ?? 0
    for (const span of check.find(text.slice(start, from + BYTES_PER_TURN + MAX_MATCH))) {
      const at = span.start + start
      if (at >= Math.max(from, end) && at < from + BYTES_PER_TURN) spans.push({ ...span, start: at, end: span.end + start })
    }
    await nextTurn()
    exchange.throwIfStopped()
  }
  return spans
}

function note({ sharedState: { telemetry } }: Gateway, exchange: Writes<'policy'>, { name }: Check, action: string, count: number): void {
  exchange.policy = [...exchange.policy ?? [], { rule: name, action, count }]
  telemetry?.checkMatched(name, action, count)
}

function refused({ name }: Check, message: string): GatewayError {
  return new GatewayError('policy_refused', `${message} (rule '${name}')`)
}
