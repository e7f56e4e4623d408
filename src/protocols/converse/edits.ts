import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, joined, membersNamed } from '../request/instructions.ts'

const textBlock = (text: string) => ({ text })

export const CONVERSE_EDITS: RequestEdits = {
  members: {
    temperature: 'inferenceConfig.temperature', top_p: 'inferenceConfig.topP', max_output_tokens: 'inferenceConfig.maxTokens',
    stop: 'inferenceConfig.stopSequences', metadata: 'requestMetadata',
  },
  stopIsList: true,
  addInstructions: (body, texts) => {
    const named = membersNamed(body, 'system')
    if (named === null) return []
    const edits = named.fields.map(field => addToText(body, field, texts, textBlock)
      ?? [{ start: field.start, end: field.end, bytes: Buffer.from(JSON.stringify([textBlock(joined(texts))])) }])
    return named.fields.length === 0 ? [named.add([textBlock(joined(texts))])] : edits.flat()
  },
}
