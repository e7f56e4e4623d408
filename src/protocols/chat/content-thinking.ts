import { asList, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'

/*
 * Reasoning inside the message's content: `{type: "thinking", thinking: [{type: "text", text}]}` of Mistral
 * (https://docs.mistral.ai/capabilities/reasoning), and `{type: "reasoning", summary: [{type: "summary_text",
 * text}]}` of Databricks (https://docs.databricks.com/aws/en/machine-learning/model-serving/query-reason-models).
 */

/** By the name of its place: writes reasoning back in the form of its server. */
const SHAPES: ReadonlyMap<string, (text: string) => JsonObject> = new Map(Object.entries({
  'content[].thinking': text => ({ type: 'thinking', thinking: [{ type: 'text', text }] }),
  'content[].reasoning': text => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] }),
}))

/** @returns the text, and the name of its place; null = not reasoning */
export function readContentThinking(part: JsonObject): { readonly place: string, readonly text: string } | null {
  const type = asText(part['type'])
  const place = `content[].${type}`
  if (!SHAPES.has(place)) return null
  const value = part['thinking'] ?? part['summary'] ?? part['reasoning'] ?? part['text']
  return { place, text: asText(value) ?? asList(value).map(piece => asText(piece) ?? asText(asObject(piece)?.['text']) ?? '').join('') }
}

/** @param place the name of its place @returns null = it was not part of the content */
export function writeContentThinking(place: string, text: string): JsonObject | null {
  return SHAPES.get(place)?.(text) ?? null
}
