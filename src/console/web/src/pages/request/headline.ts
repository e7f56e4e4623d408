import type { RequestDetails } from '../../../../api/logs.ts'
import { duration, money } from '../../format.ts'

/**
 * Describes the end and the cost of a request in one or two sentences.
 *
 * @param elapsedMs - ms since the start; used only while the request runs
 */
export function headline(story: RequestDetails, elapsedMs: number): string {
  if (story.running) {
    return `Running for ${duration(Math.max(0, elapsedMs))} so far. All values are provisional.`
  }
  return `${outcomeText(story)} ${costText(story)}`
}

function outcomeText({ row, attempts }: RequestDetails): string {
  const { end, status, duration_ms } = row
  const after = duration_ms === null ? '' : ` after ${duration(duration_ms)}`
  const parts = attempts.filter(isPart).length
  const tries = attempts.length < 2 ? ''
    : parts > 1 ? `, combined from ${parts} attempts`
    : `, on attempt ${attempts.length}`
  const afterAttempts = attempts.length > 1 ? ` and ${attempts.length} attempts` : ''
  switch (end) {
    case 'complete':
      return `Completed${duration_ms === null ? '' : ` in ${duration(duration_ms)}`}${tries}.`
    case 'client_gone':
      return `The client disconnected${after}, before the response was complete.`
    case 'upstream_cut':
      return `The upstream disconnected${after}, before the response was complete.`
    case 'timeout':
      return `Timed out${after}${afterAttempts}.`
    case 'refused':
      return `Refused by the gateway${status === null ? '' : ` with ${status}`}. It was not sent to an upstream.`
    case 'error':
      return `Failed${status === null ? '' : ` with ${status}`}${after}${afterAttempts}.`
    case 'interrupted':
      return 'The gateway process ended while the request was running. The values are from its last checkpoint.'
  }
}

/** Tells whether the attempt produced a part of the response: only then does it have its own usage. */
function isPart({ input_tokens, output_tokens }: RequestDetails['attempts'][number]): boolean {
  return input_tokens !== null || output_tokens !== null
}

/** Why the cost is unknown. */
export function unknownCostReason({ price_version }: Pick<RequestDetails, 'price_version'>): string {
  return price_version === null ? 'no price for this model'
    : 'part of the usage is unknown or has no price'
}

function costText({ row: { cost_usd, source, end }, price_version }: RequestDetails): string {
  if (cost_usd === null) return `Cost unknown: ${unknownCostReason({ price_version })}.`
  if (/^0(\.0*)?$/.test(cost_usd)) return 'Not billed.'
  const estimated = source === 'estimated' || source === 'mixed' ? ' (estimated)' : ''
  const label = end === 'complete' ? 'Cost' : 'Cost until then'
  return `${label}: ${money(cost_usd)}${estimated}.`
}

/** The label of the upstream in the row of a request, which says what the upstream did. */
export function upstreamRole({ attempts, running, row: { upstream } }: RequestDetails): string {
  const last = attempts.at(-1)
  if (last === undefined) return running || upstream === null ? 'Upstream' : 'Upstream (not reached)'
  return last.outcome === 'ok' || last.status !== null ? 'Served by' : 'Last tried'
}

/** The path of each endpoint, for the form that explains routing. */
const PATHS: Readonly<Record<string, string>> = {
  'chat.completions': '/v1/chat/completions',
  completions: '/v1/completions',
  responses: '/v1/responses',
  'responses.compact': '/v1/responses/compact',
  'responses.input_tokens': '/v1/responses/input_tokens',
  decisions: '/v1/decisions',
  embeddings: '/v1/embeddings',
  'images.generations': '/v1/images/generations',
  'images.edits': '/v1/images/edits',
  'audio.transcriptions': '/v1/audio/transcriptions',
  'audio.translations': '/v1/audio/translations',
  'audio.speech': '/v1/audio/speech',
  realtime: '/v1/realtime',
  messages: '/v1/messages',
  'messages.count_tokens': '/v1/messages/count_tokens',
  'generate.content': '/v1beta/models/*:generateContent',
  'generate.stream': '/v1beta/models/*:streamGenerateContent',
  'generate.count_tokens': '/v1beta/models/*:countTokens',
  'generate.embed': '/v1beta/models/*:embedContent',
  'generate.batch_embed': '/v1beta/models/*:batchEmbedContents',
  interactions: '/v1beta/interactions',
}

/** @returns link to the explanation of the request's routing; null = the endpoint is unknown */
export function explainLink({ endpoint, model, key }: RequestDetails['row']): string | null {
  const path = endpoint === null ? undefined : PATHS[endpoint]
  if (path === undefined || (path.includes('*') && model === null)) return null
  const query = new URLSearchParams({
    path: path.replace('*', () => encodeURIComponent(model ?? '')),
    ...model !== null && { model },
    ...key !== null && { key },
  })
  return `/routes?${query}`
}
