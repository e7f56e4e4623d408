import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, joined, membersNamed } from '../request/instructions.ts'

export const RESPONSES_EDITS: RequestEdits = {
  members: {
    temperature: 'temperature', top_p: 'top_p', max_output_tokens: 'max_output_tokens', reasoning_effort: 'reasoning.effort',
    metadata: 'metadata', service_tier: 'service_tier',
  },
  stopIsList: false,
  addInstructions: (body, texts) => {
    const named = membersNamed(body, 'instructions')
    if (named === null) return []
    const edits = named.fields.map(field => addToText(body, field, texts, text => text)
      ?? [{ start: field.start, end: field.end, bytes: Buffer.from(JSON.stringify(joined(texts))) }])
    return named.fields.length === 0 ? [named.add(joined(texts))] : edits.flat()
  },
}
