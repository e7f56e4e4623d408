import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, elementsOf, insertBefore, joined, memberIn, membersNamed, type Range } from '../request/instructions.ts'
import type { Edit } from '../json/splice.ts'

const SYSTEM_ROLE = /^"(?:system|developer)"$/
const textPart = (text: string) => ({ type: 'text', text })

function isInstruction(body: Buffer, message: Range): boolean {
  const role = memberIn(body, message, 'role')
  return role !== null && SYSTEM_ROLE.test(body.toString('latin1', role.start, Math.min(role.end, role.start + 20)))
}

export const CHAT_EDITS: RequestEdits = {
  members: {
    temperature: 'temperature', top_p: 'top_p', top_k: 'top_k', max_output_tokens: 'max_tokens', reasoning_effort: 'reasoning_effort',
    stop: 'stop', seed: 'seed', metadata: 'metadata', service_tier: 'service_tier',
  },
  otherOutputBound: 'max_completion_tokens',
  stopIsList: false,
  // Some servers take one system message only, so the text joins those at the beginning.
  addInstructions: (body, texts) => (membersNamed(body, 'messages')?.fields ?? []).flatMap(messages => {
    let start: Range | null = null
    let first: Range | null = null
    let last: Range | null = null
    for (const element of elementsOf(body, messages)) {
      start ??= element
      if (!isInstruction(body, element)) break
      last = memberIn(body, element, 'content')
      first ??= last
    }
    if (first === null || last === null) return start === null ? [] : [insertBefore(start, { role: 'system', content: joined(texts) })]
    const added: (Edit[] | null)[] = [
      addToText(body, first, { prepend: texts.prepend, append: null }, textPart), addToText(body, last, { prepend: null, append: texts.append }, textPart),
    ]
    return added.flatMap(edits => edits ?? [])
  }),
}
