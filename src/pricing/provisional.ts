import { readCharacters, estimateTokens } from '../protocols/request/request-estimate.ts'
import { isQueuedResponse } from '../protocols/usage/response-body.ts'
import type { StreamMeter } from '../protocols/events/stream-meter.ts'
import { tokensOfBytes } from '../protocols/usage/tokens-of-bytes.ts'
import { blankUsage, type Usage } from '../protocols/usage/usage.ts'
import { reportedBy, type MeteredResponse, type SettledUsage, type SettleInput } from './settle-usage.ts'

/** The response of a running exchange so far. */
export interface ResponseProgress extends Pick<SettleInput, 'endpoint' | 'response' | 'request'> {
  /** Input tokens by the estimate at admission; null = unknown. */
  readonly inputTokens: number | null
  /** true = the upstream generates the whole response even if the client disconnects. */
  readonly inBackground: boolean
  /** true = the body of a whole response is compressed. */
  readonly isCompressed: boolean
}

/**
 * The usage of a running request for its ledger checkpoint, without counting tokens. Counts that would be unknown if the response broke
 * now are null.
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
      // Do not count the text to speak as a prompt. The upstream reports tokens of the audio only at the end.
      const known = hasCome ? provisionalUsage(meter, null) : usage
      return { usage: { ...known, characters: request && readCharacters(request) }, unread: false }
    }
    default:
      return { usage, unread: false }
  }
}

/** @returns true = the end of a background response has not arrived */
function isUnfinished(response: MeteredResponse | null): boolean {
  if (response?.kind === 'stream') return response.meter.terminated !== true && !response.meter.sawError
  return response?.kind !== 'body' || isQueuedResponse(response.body)
}

/** @returns true = the stream was read (`terminated` is not null), and the tokens of all received output can be counted */
function isCountable(meter: StreamMeter | null): boolean {
  return meter !== null && meter.terminated !== null && !meter.uncountable
}

/** The reported usage, in which estimates replace missing counts. @param text a whole response; null = not arrived, or a stream */
export function provisionalUsage(meter: StreamMeter | null, inputTokens: number | null, text: Buffer | null = null): Usage {
  // Return unknown usage instead of 0 if nothing is known.
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
