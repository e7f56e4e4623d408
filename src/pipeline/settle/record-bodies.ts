import type { Exchange, Writes } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { StreamMask, secretsOf } from '../../proxy/upstream/secret-mask.ts'
import { ResponseRecorder } from '../../transcripts/recording.ts'

/** Bytes of each body in a trace. */
const MAX_TRACE_CONTENT = 64 * 1024

/** Records what the client is sent from now on, if a rule or the telemetry configuration says so; without the client's own credential. */
export function startRecording(gateway: Gateway, exchange: Writes<'recording'>): void {
  const own = secretsOf(exchange.credentials?.own ?? [])
  const newMask = own.length === 0 ? null : () => new StreamMask(own)
  if (exchange.trace?.isSampled && gateway.sharedState.telemetry?.sendsContent) {
    exchange.recording = new ResponseRecorder(MAX_TRACE_CONTENT, newMask)
  }
  const { key } = exchange.identity
  if (key === null) return
  const rule = gateway.bodyRules(key.name)
  if (rule !== null) exchange.recording = new ResponseRecorder(rule.limit, newMask)
}

/** Stores the recording for as long as the current rule says. */
export function archiveRecording(gateway: Gateway, exchange: Exchange, recording: ResponseRecorder): void {
  const { identity: { key }, request: { body }, req: { headers } } = exchange
  if (key === null) return
  const rule = gateway.sharedState.bodyRules(key.name)
  if (rule === null) return
  gateway.sharedState.archive?.keep({
    requestId: exchange.id,
    startedAt: exchange.startedWall,
    key: key.name,
    expiresAt: exchange.startedWall + rule.keep,
    request: recording.requestBody(body?.bytes ?? new Uint8Array(), headers['content-type'] ?? null, isEncoded(exchange)),
    response: recording.responseBody(),
  }, recording.compression)
}

/** Is the request's body compressed, because the gateway does not read it? */
export function isEncoded({ request: { body }, req: { headers } }: Pick<Exchange, 'request' | 'req'>): boolean {
  return headers['content-encoding'] !== undefined && body !== null && body.wire === null
}
