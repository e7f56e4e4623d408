import type { GatewayError } from '../../base/errors.ts'
import type { ClientFormat, ModelCard } from '../endpoint/protocol.ts'
import { rateLimitHeaders } from '../endpoint/rate-limit-headers.ts'

/** An error has the shape `{error: {code, message, status, details}}`, which is google.rpc.Status as JSON. */
export const GENERATE_FORMAT: ClientFormat = {
  protocol: 'generate',
  errorBody: error => JSON.stringify({ error: errorObject(error) }),
  // Clients drop a block that does not begin with `data:`, so no `event:` line is sent.
  streamError: error => `data: ${JSON.stringify({ error: errorObject(error) })}\n\n`,
  errorEvent: json => `data: ${json}\n\n`,
  keepAlive: ': keep-alive\n\n',
  modelList: models => JSON.stringify({ models: models.map(card) }),
  modelCard: model => JSON.stringify(card(model)),
  unmaskedMembers: ['usageMetadata', 'candidates'],
  requestIdHeader: null,
  isGoogles: true,
  isOpenais: false,
  rateLimitHeaders,
}

export const INTERACTION_FORMAT: ClientFormat = {
  ...GENERATE_FORMAT,
  streamError: ({ code, message }) => `event: error\ndata: ${JSON.stringify({ event_type: 'error', error: { code, message } })}\n\n`,
}

function card({ name, context, output }: ModelCard) {
  return {
    name: `models/${name}`, baseModelId: name, version: '001', displayName: name,
    ...context !== null && { inputTokenLimit: context }, ...output !== null && { outputTokenLimit: output },
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents'],
  }
}

function errorObject(error: GatewayError) {
  return {
    code: error.status, message: error.message, status: statusName(error.status),
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: error.code.toUpperCase(), domain: 'model-gateway' }],
  }
}

const STATUS_NAMES: ReadonlyMap<number, string> = new Map([
  [401, 'UNAUTHENTICATED'], [402, 'RESOURCE_EXHAUSTED'], [403, 'PERMISSION_DENIED'], [404, 'NOT_FOUND'], [408, 'DEADLINE_EXCEEDED'],
  [429, 'RESOURCE_EXHAUSTED'], [503, 'UNAVAILABLE'], [504, 'DEADLINE_EXCEEDED'], [529, 'UNAVAILABLE'],
])

/** Google's name for the HTTP status of an error. */
export function statusName(status: number): string {
  return STATUS_NAMES.get(status) ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
}
