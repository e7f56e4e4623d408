import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, joined, memberIn, membersNamed } from '../request/instructions.ts'

const textPart = (text: string) => ({ text })
/** Google's servers read both spellings. */
const INSTRUCTIONS = ['systemInstruction', 'system_instruction'] as const

export const GENERATE_EDITS: RequestEdits = {
  members: {
    temperature: 'generationConfig.temperature', top_p: 'generationConfig.topP', top_k: 'generationConfig.topK',
    max_output_tokens: 'generationConfig.maxOutputTokens', reasoning_effort: 'generationConfig.thinkingConfig.thinkingLevel',
    stop: 'generationConfig.stopSequences', seed: 'generationConfig.seed', metadata: 'labels',
  },
  stopIsList: true,
  addInstructions: (body, texts) => {
    const named = INSTRUCTIONS.map(name => membersNamed(body, name)).filter(found => found !== null)
    const edits = named.flatMap(({ fields }) => fields).map(field => {
      const parts = memberIn(body, field, 'parts')
      const added = parts && addToText(body, parts, texts, textPart)
      return added ?? [{ start: field.start, end: field.end, bytes: Buffer.from(JSON.stringify({ parts: [textPart(joined(texts))] })) }]
    })
    const [first] = named
    return edits.length > 0 ? edits.flat() : first === undefined ? [] : [first.add({ parts: [textPart(joined(texts))] })]
  },
}
