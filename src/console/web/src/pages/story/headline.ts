import type { RequestDetails } from '../../../../api/logs.ts'
import { duration, money } from '../../format.ts'

/**
 * What became of a request, in plain words, with what it cost.
 *
 * @param elapsedMs since it began, as far as it is still running
 */
export function headline(story: RequestDetails, elapsedMs: number): string {
  if (story.running) {
    return `It is still running, for ${duration(Math.max(0, elapsedMs))} so far. All of this is provisional.`
  }
  return `${whatHappened(story)} ${whatItCost(story)}`
}

function whatHappened({ row, attempts }: RequestDetails): string {
  const { end, status, duration_ms } = row
  const after = duration_ms === null ? '' : ` after ${duration(duration_ms)}`
  const tries = attempts.length < 2 ? ''
    : attempts.filter(isPart).length > 1 ? `, put together from ${attempts.filter(isPart).length} attempts`
    : `, on attempt ${attempts.length}`
  switch (end) {
    case 'complete':
      return `It was answered in full${after}${tries}.`
    case 'client_gone':
      return `The client closed its connection${after}, before the answer was complete.`
    case 'upstream_cut':
      return `The upstream broke off${after}, before the answer was complete.`
    case 'timeout':
      return `A deadline passed${after}${attempts.length > 1 ? ` and ${attempts.length} attempts` : ''}.`
    case 'refused':
      return `The gateway refused it${status === null ? '' : ` with ${status}`}. No upstream heard of it.`
    case 'error':
      return `It failed${status === null ? '' : ` with ${status}`}${after}` +
        `${attempts.length > 1 ? ` and ${attempts.length} attempts` : ''}.`
    case 'interrupted':
      return 'The gateway process ended while it ran. What is known is of its last moments.'
  }
}

/** Where several attempts made up the answer, each says what it used. */
function isPart({ input_tokens, output_tokens }: RequestDetails['attempts'][number]): boolean {
  return input_tokens !== null || output_tokens !== null
}

/** Why nobody knows the cost. */
export function unknownCostReason({ price_version }: Pick<RequestDetails, 'price_version'>): string {
  return price_version === null ? 'there is no price for what was used'
    : 'not all that was used is known, or has a price'
}

function whatItCost({ row: { cost_usd, source, end }, price_version }: RequestDetails): string {
  if (cost_usd === null) return `What it cost is not known: ${unknownCostReason({ price_version })}.`
  if (/^0(\.0*)?$/.test(cost_usd)) return 'It cost nothing.'
  const sure = source === 'estimated' || source === 'mixed' ? ', as the gateway estimates' : ''
  const what = end === 'complete' ? 'It cost' : 'What was generated until then cost'
  return `${what} ${money(cost_usd)}${sure}.`
}

/** What the upstream that a request's row names has to do with it. */
export function upstreamRole({ attempts, running, row: { upstream } }: RequestDetails): string {
  const last = attempts.at(-1)
  if (last === undefined) return running || upstream === null ? 'Upstream' : 'Would have gone to'
  return last.outcome === 'ok' || last.status !== null ? 'Answered by' : 'Last asked'
}

/** Paths under which an endpoint is reached, for the explain form. */
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

/** @returns the page that explains where such a request goes; null for an endpoint without a name */
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
