import type { Part } from './request.ts'

/** The text of a text part or a text document; null = the part has other content. */
export function plainText(part: Part): string | null {
  if (part.type === 'text') return part.text
  if (part.type !== 'document') return null
  const { source, name } = part
  const isText = source.kind === 'text' || (source.kind === 'base64' && source.mediaType.startsWith('text/'))
  if (!isText) return null
  const text = source.kind === 'text' ? source.text : Buffer.from(source.data, 'base64').toString('utf8')
  return name === null ? text : `${name}\n\n${text}`
}
