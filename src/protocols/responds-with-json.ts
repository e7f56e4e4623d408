import type { EndpointName } from './shared/names.ts'

const JSON_ENDPOINTS: ReadonlySet<EndpointName> = new Set<EndpointName>([
  'chat.completions', 'completions', 'responses', 'responses.compact', 'responses.input_tokens',
  'decisions',
  'embeddings', 'images.generations', 'images.edits',
  'messages', 'messages.count_tokens',
  'generate.content', 'generate.stream', 'generate.count_tokens', 'generate.embed', 'generate.batch_embed',
  'interactions',
])

/** Are the endpoint's answers JSON, or streams of JSON? Anything else is no answer of its. */
export function respondsWithJson(endpoint: EndpointName): boolean {
  return JSON_ENDPOINTS.has(endpoint)
}
