import type { ClientFormat } from '../../protocols/endpoint/protocol.ts'
import { parseBounded } from '../../base/json-size.ts'
import type { BodyDecoder, NativeRequest, ResponseReading } from '../shared/provider.ts'
import { errorJson } from './errors.ts'
import { EventStreamDecoder, type Frame } from './event-stream.ts'
import { WholeBody } from '../shared/whole-body.ts'

const EVENT_STREAM = 'application/vnd.amazon.eventstream'
/** The `type` of an event, if it is the first member, as in most events. */
const TYPE = /^\{\s*"type"\s*:\s*"([a-z_]+)"/
/** The metrics in the last event, which are removed: latencies, and counts that the usage contains too. */
const METRICS = /,\s*"amazon-bedrock-invocationMetrics"\s*:\s*\{[^{}]*\}/

/** Converts a response to Anthropic's format, or a stream of Converse to server-sent events. */
export function readResponse({ endpoint: { format, name } }: NativeRequest, status: number, headers: readonly string[]): ResponseReading {
  const decoder = decoderOf(format, name, status, headers)
  const isStream = decoder instanceof EventStreamDecoder
  return { headers: clientHeaders(headers, decoder !== null, isStream), decoder }
}

function decoderOf(format: ClientFormat, endpoint: string, status: number, headers: readonly string[]): BodyDecoder | null {
  if (status >= 400) return new WholeBody(body => errorJson(valueOf(headers, 'x-amzn-errortype'), status, body))
  if (valueOf(headers, 'content-type').startsWith(EVENT_STREAM)) return new EventStreamDecoder(frame => writeFrame(frame, format))
  return endpoint === 'messages.count_tokens' ? new WholeBody(writeCount) : null
}

/** @returns the frame as a server-sent event. The event of InvokeModelWithResponseStream is base64 inside the frame */
function writeFrame({ kind, name, payload }: Frame, format: ClientFormat): string {
  if (kind !== 'event') return format.errorEvent(errorJson(name, null, payload))
  // An event of Converse has a name other than `chunk`.
  if (name !== 'chunk') return `event: ${name}\ndata: ${oneLine(payload.toString('utf8'))}\n\n`
  const { bytes } = parseBounded(payload.toString('utf8')) as { readonly bytes?: unknown }
  if (typeof bytes !== 'string') throw new TypeError('a chunk has no bytes')
  const text = Buffer.from(bytes, 'base64').toString('utf8').replace(METRICS, '')
  const json = oneLine(text)
  const type = TYPE.exec(json)?.[1] ?? String((parseBounded(json) as { readonly type?: unknown }).type)
  return `event: ${type}\ndata: ${json}\n\n`
}

function oneLine(json: string): string {
  return /[\r\n]/.test(json) ? JSON.stringify(parseBounded(json)) : json
}

function writeCount(body: Buffer): string {
  const { inputTokens } = parseBounded(body.toString('utf8')) as { readonly inputTokens?: unknown }
  if (typeof inputTokens !== 'number') throw new TypeError('there is no count')
  return JSON.stringify({ input_tokens: inputTokens })
}

/** Removes the provider's headers, and renames the header of the request id to the name that clients read. */
function clientHeaders(headers: readonly string[], isDecoded: boolean, isStream: boolean): string[] {
  const out: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    const value = headers[i + 1] as string
    if (name === 'x-amzn-requestid') out.push('request-id', value)
    else if (name.startsWith('x-amz') || (isDecoded && name === 'content-length')) continue
    else if (name === 'content-type' && isDecoded) out.push('content-type', isStream ? 'text/event-stream; charset=utf-8' : 'application/json')
    else out.push(headers[i] as string, value)
  }
  return out
}

function valueOf(headers: readonly string[], name: string): string {
  const at = headers.findIndex((header, i) => i % 2 === 0 && header.toLowerCase() === name)
  return at === -1 ? '' : (headers[at + 1] as string)
}
