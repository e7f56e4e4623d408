import { asList, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'

/*
 * Reasoning inside the message's content: `{type: "thinking", thinking: [{type: "text", text}]}` of Mistral
 * (https://docs.mistral.ai/capabilities/reasoning), and `{type: "reasoning", summary: [{type: "summary_text",
 * text}]}` of Databricks (https://docs.databricks.com/aws/en/machine-learning/model-serving/query-reason-models).
 */

/** For each place of reasoning, writes a part of the content in the form of the server that sent it. */
const SHAPES: ReadonlyMap<string, (text: string) => JsonObject> = new Map(Object.entries({
  'content[].thinking': text => ({ type: 'thinking', thinking: [{ type: 'text', text }] }),
  'content[].reasoning': text => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] }),
}))

/** @returns the text, and its place: a key of `SHAPES`; null = not reasoning */
export function readContentThinking(part: JsonObject): { readonly place: string, readonly text: string } | null {
  const type = asText(part['type'])
  const place = `content[].${type}`
  if (!SHAPES.has(place)) return null
  const value = part['thinking'] ?? part['summary'] ?? part['reasoning'] ?? part['text']
  return { place, text: asText(value) ?? asList(value).map(piece => asText(piece) ?? asText(asObject(piece)?.['text']) ?? '').join('') }
}

/** @param place from `readContentThinking` @returns null = the reasoning was not part of the content */
export function writeContentThinking(place: string, text: string): JsonObject | null {
  return SHAPES.get(place)?.(text) ?? null
}
