import type { Target } from './config/types.ts'
import { GatewayError } from './errors.ts'
import type { AttemptRecord, Exchange } from './exchange.ts'
import type { Gateway, LiveUpstream } from './gateway.ts'
import { observe } from './observe.ts'
import { PROTOCOLS } from './protocols/index.ts'
import { renameEdits, renamePath } from './protocols/rename.ts'
import { spliceBytes, withIncludeUsage } from './protocols/splice.ts'
import type { Edit } from './protocols/splice.ts'
import { Attempt } from './proxy/attempt.ts'
import { Deadlines } from './proxy/deadlines.ts'
import { headersUp } from './proxy/headers.ts'
import { Relay } from './proxy/relay.ts'
import type { AnswerHead } from './proxy/relay.ts'
import type { OutgoingRequest } from './proxy/transport.ts'
import { limitHeaders } from './reserve.ts'

/**
 * Sends the exchange to one upstream and relays what it answers.
 *
 * @throws GatewayError while nothing was sent to the client; what breaks later
 *   is told to the client in mid-stream, and returned
 */
export async function forward(
  gateway: Gateway, exchange: Exchange, candidate: Target,
): Promise<GatewayError | null> {
  const { route, res } = exchange
  const upstream = gateway.upstreams.get(candidate.upstream.name) as LiveUpstream
  const timeouts = route?.timeouts ?? gateway.config.timeouts
  const deadlines = new Deadlines(gateway.clock, timeouts, exchange.startedAt, error => exchange.stop(error))
  const beganAt = gateway.clock.monotonic()
  const record: AttemptRecord = {
    upstream: upstream.config.name,
    model: candidate.model ?? exchange.model,
    outcome: 'ok',
    ms: 0,
    atMs: beganAt - exchange.startedAt,
  }
  exchange.attempts.push(record)
  const relay = new Relay({
    res,
    own: { version: gateway.version, requestId: exchange.id, limits: limitHeaders(gateway, exchange) },
    clock: gateway.clock,
    deadlines,
    inspect: head => {
      const refusal = inspect(gateway, exchange, candidate, head)
      if (refusal) return refusal
      exchange.status = head.status
      return observe(gateway, exchange, head)
    },
    lastWords: error => {
      const { endpoint } = exchange.classified
      return PROTOCOLS[endpoint.protocol].streamError(error, endpoint.name, exchange.id)
    },
    resume: () => attempt.resume(),
  })
  const attempt = new Attempt({
    transport: upstream.transport,
    upstreamUrl: upstream.url,
    request: outgoing(exchange, upstream, candidate),
    deadlines,
    sink: relay,
  })
  exchange.attempt = attempt
  exchange.relay = relay
  let failure: GatewayError | null = null
  try {
    failure = await attempt.run(gateway.proxy)
    if (failure) throw failure
    exchange.status = relay.status
    failure = await relay.done
    return failure
  } finally {
    deadlines.stop()
    // It went up and nothing came back: who left it waiting may have to pay for the prompt.
    if (attempt.sent && relay.status === 0) exchange.answer = { kind: 'none', delivered: false }
    exchange.bytesOut = relay.bytes
    exchange.firstByteAt = relay.firstByteAt
    if (relay.status !== 0) record.status = relay.status
    record.outcome = failure?.code ?? 'ok'
    record.ms = gateway.clock.monotonic() - beganAt
  }
}

/** The request as it goes upstream: path, headers and body rewritten for the candidate, and not one byte more. */
export function outgoing(exchange: Exchange, upstream: LiveUpstream, candidate: Target): OutgoingRequest {
  const { req, target, classified, body } = exchange
  const renamed = candidate.model !== null && candidate.model !== exchange.model ? candidate.model : null
  const edits = body === null ? [] : [
    ...renamed === null ? [] : renameEdits(classified, body, renamed),
    ...askForUsage(exchange, upstream),
  ]
  const changed = body !== null && edits.length > 0 ? spliceBytes(body.bytes, edits) : null
  const bytes = changed ?? body?.wire ?? body?.bytes ?? null
  const path = renamed === null ? target.path : renamePath(classified, target.path, renamed)
  return {
    method: req.method ?? 'GET',
    path: upstream.prefix + path + target.query,
    headers: headersUp(req.rawHeaders, {
      upstream: upstream.config,
      requestId: exchange.id,
      httpVersion: req.httpVersion,
      trustedPeer: exchange.trustedPeer,
      identity: exchange.stream,
      dropContentEncoding: changed !== null && body?.wire !== null,
      contentLength: bytes === null ? null : bytes.length,
    }),
    body: bytes,
  }
}

/**
 * A chat stream tells its usage only when it is asked to. Where the client did
 * not ask, the gateway does, and hides the answer to its own question.
 */
function askForUsage(exchange: Exchange, upstream: LiveUpstream): Edit[] {
  const { body, classified, stream } = exchange
  const { name } = classified.endpoint
  exchange.hidesUsage = false
  if (!stream || upstream.config.usage === 'as_is' || !body?.json) return []
  if (name !== 'chat.completions' && name !== 'completions') return []
  const edits = withIncludeUsage(body.bytes, body.json)
  exchange.hidesUsage = edits !== null
  return edits ?? []
}

/** A refused operator's credential is not the client's affair: it must not look like a bad key of its own. */
function inspect(gateway: Gateway, exchange: Exchange, candidate: Target, head: AnswerHead): GatewayError | null {
  if (head.status !== 401 && head.status !== 403) return null
  const upstream = candidate.upstream.name
  gateway.log.error(
    { request: exchange.id, upstream, status: head.status },
    "the upstream refused the gateway's own credential: check upstreams.%s.auth", upstream,
  )
  return new GatewayError(
    'upstream_rejected_key',
    `the upstream answered ${head.status} to the gateway's own credential; the operator has to mend it`,
    { headers: { 'x-should-retry': 'false' } },
  )
}
