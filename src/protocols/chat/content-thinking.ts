import { asList, asObject, asText, type JsonObject } from '../neutral/json.ts'

/**
 * Write reasoning as a content part; the keys are the places of the reasoning. For Mistral (https://docs.mistral.ai/capabilities/reasoning)
 * and Databricks (https://docs.databricks.com/aws/en/machine-learning/model-serving/query-reason-models).
 */
const SHAPES: ReadonlyMap<string, (text: string) => JsonObject> = new Map(Object.entries({
  'content[].thinking': text => ({ type: 'thinking', thinking: [{ type: 'text', text }] }),
  'content[].reasoning': text => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] }),
}))

/** @returns the text of the reasoning and its place, a key of `SHAPES`; null = the part is not reasoning */
export function readContentThinking(part: JsonObject): { readonly place: string, readonly text: string } | null {
  const type = asText(part['type'])
  const place = `content[].${type}`
  if (!SHAPES.has(place)) return null
  const value = part['thinking'] ?? part['summary'] ?? part['reasoning'] ?? part['text']
  return { place, text: asText(value) ?? asList(value).map(piece => asText(piece) ?? asText(asObject(piece)?.['text']) ?? '').join('') }
}

/** @returns null = the place is not in the content */
export function writeContentThinking(place: string, text: string): JsonObject | null {
  return SHAPES.get(place)?.(text) ?? null
}
