import { readCharacters, estimateTokens } from '../protocols/request/request-estimate.ts'
import { isQueuedResponse } from '../protocols/usage/response-body.ts'
import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { tokensOfBytes } from '../protocols/usage/tokens-of-bytes.ts'
import { blankUsage, type Usage } from '../protocols/usage/usage.ts'
import { reportedBy, type MeteredResponse, type SettledUsage, type SettleInput } from './settle-usage.ts'

/** The response of a running exchange so far. */
export interface ResponseProgress extends Pick<SettleInput, 'endpoint' | 'response' | 'request'> {
  /** As estimated at admission. */
  readonly inputTokens: number | null
  /** The upstream generates the whole response, even if the client disconnects. */
  readonly inBackground: boolean
  /** The body of a whole response is compressed. */
  readonly isCompressed: boolean
}

/**
 * The usage of a running request without counting, for its checkpoint, which remains if the process is killed. What would be
 * unknown if the response broke now is unknown here too.
 */
export function provisional(
  { endpoint, response, inputTokens, request, inBackground, isCompressed }: ResponseProgress,
): Pick<SettledUsage, 'usage' | 'unread'> {
  const { metering } = endpoint
  const meter = response?.kind === 'stream' ? response.meter : null
  const body = response?.kind === 'body' ? response.body : null
  const usage = provisionalUsage(meter, inputTokens, metering === 'text' && !isCompressed ? body : null)
  const unknown = { usage: { ...usage, outputTokens: null }, unread: true }
  const hasCome = meter?.sawContent ?? (response?.kind === 'none' ? response.delivered : (body?.length ?? 0) > 0)
  switch (metering) {
    case 'text':
      if (inBackground && endpoint.supportsBackground && isUnfinished(response)) return unknown
      return hasCome && body === null && !isCountable(meter) ? unknown : { usage, unread: false }
    case 'images':
      return hasCome && (meter?.reading()?.usage.outputTokens ?? null) === null ? unknown : { usage, unread: false }
    case 'transcript':
      return { usage, unread: hasCome && (usage.inputTokens ?? usage.seconds) === null }
    case 'speech': {
      // The text to speak is not a prompt. Tokens of the audio are reported only at the end.
      const known = hasCome ? provisionalUsage(meter, null) : usage
      return { usage: { ...known, characters: request && readCharacters(request) }, unread: false }
    }
    default:
      return { usage, unread: false }
  }
}

/** The end of a background response has not arrived. */
function isUnfinished(response: MeteredResponse | null): boolean {
  if (response?.kind === 'stream') return response.meter.terminated !== true && !response.meter.sawError
  return response?.kind !== 'body' || isQueuedResponse(response.body)
}

/** The unreported part of the received text can be counted. `terminated` null = the stream was not read. */
function isCountable(meter: StreamMeter | null): boolean {
  return meter !== null && meter.terminated !== null && !meter.uncountable
}

/** The reported usage, with estimates of the rest. @param text a whole response; null = none yet */
export function provisionalUsage(meter: StreamMeter | null, inputTokens: number | null, text: Buffer | null = null): Usage {
  // Unknown usage is not 0.
  if (meter === null && inputTokens === null) return blankUsage()
  const reported = meter ? reportedBy(meter, meter.reading()) : blankUsage()
  const { content, reasoning, tool } = meter?.generatedBytes ?? { content: 0, reasoning: 0, tool: 0 }
  const counted = text ? estimateTokens(text) : tokensOfBytes(content + reasoning + tool)
  return {
    ...reported,
    inputTokens: reported.inputTokens ?? inputTokens,
    outputTokens: meter?.isOutputReported && reported.outputTokens !== null
      ? reported.outputTokens : Math.max(reported.outputTokens ?? 0, counted),
  }
}
