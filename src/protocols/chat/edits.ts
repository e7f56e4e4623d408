import type { RequestEdits } from '../endpoint/protocol.ts'
import { addToText, elementsOf, insertBefore, joined, memberIn, membersNamed } from '../request/instructions.ts'
import type { Edit } from '../json/splice.ts'

const SYSTEM_ROLE = /^"(?:system|developer)"$/
const textPart = (text: string) => ({ type: 'text', text })

export const CHAT_EDITS: RequestEdits = {
  members: {
    temperature: 'temperature', top_p: 'top_p', top_k: 'top_k', max_output_tokens: 'max_tokens', reasoning_effort: 'reasoning_effort',
    stop: 'stop', seed: 'seed', metadata: 'metadata', service_tier: 'service_tier',
  },
  otherOutputBound: 'max_completion_tokens',
  stopIsList: false,
  // Some servers take one system message only, so the text joins those at the beginning.
  addInstructions: (body, texts) => (membersNamed(body, 'messages')?.fields ?? []).flatMap(messages => {
    const elements = elementsOf(body, messages)
    const rest = elements.findIndex(element => {
      const role = memberIn(body, element, 'role')
      return role === null || !SYSTEM_ROLE.test(body.toString('utf8', role.start, role.end))
    })
    const leading = rest === -1 ? elements : elements.slice(0, rest)
    const first = leading[0] && memberIn(body, leading[0], 'content')
    const last = leading.length > 0 ? memberIn(body, leading.at(-1)!, 'content') : null
    if (!first || !last) {
      const message = { role: 'system', content: joined(texts) }
      return elements[0] ? [insertBefore(elements[0], message)] : []
    }
    const added: (Edit[] | null)[] = [
      addToText(body, first, { prepend: texts.prepend, append: null }, textPart), addToText(body, last, { prepend: null, append: texts.append }, textPart),
    ]
    return added.flatMap(edits => edits ?? [])
  }),
}
