import { writeTurns } from '../neutral/dialects/anthropic-request.ts'
import { asList, asObject, type JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import type { CacheMark, DocumentPart, ImagePart, MediaSource, Message, Part, ToolResultPart } from '../neutral/request.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'
import { writeArguments } from '../neutral/tools.ts'
import type { WriteContext } from '../neutral/translation.ts'
import { makerOf } from './model-fields.ts'

const TOOL_IDS = { pattern: /^[a-zA-Z0-9_-]+$/, maxLength: 64, prefix: 'tooluse_' }
const IMAGE_FORMATS: ReadonlySet<string> = new Set(['png', 'jpeg', 'gif', 'webp'])
/** Converse's names of document formats, by media type. Source: Amazon Bedrock API Reference, "DocumentBlock". */
const DOCUMENT_FORMATS: ReadonlyMap<string, string> = new Map(Object.entries({
  'application/pdf': 'pdf', 'text/csv': 'csv', 'text/html': 'html', 'text/plain': 'txt', 'text/markdown': 'md',
  'application/msword': 'doc', 'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
}))

/** Writes the parts of a conversation as content blocks. */
export class ContentWriter {
  readonly #context: WriteContext
  #documents = 0

  constructor(context: WriteContext) {
    this.#context = context
  }

  messages(messages: readonly Message[]): JsonObject[] {
    return writeTurns(messages, this.#context.report, part => this.content(part)).map(withDocumentText)
  }

  content(part: Part): JsonObject[] {
    const blocks = this.#blocks(part)
    if (part.cache === null || blocks.length === 0) return blocks
    const { model, report } = this.#context
    const rule = makerOf(model).cache
    if (rule !== null && (part.type !== 'document' || rule.behindDocuments)) return [...blocks, cachePoint(part.cache, model)]
    report.drop(`${part.path}.cache_control`)
    return blocks
  }

  #blocks(part: Part): JsonObject[] {
    const { report, provider } = this.#context
    switch (part.type) {
      case 'text':
      case 'refusal':
        // The API refuses blank text.
        return part.text.trim() === '' ? [] : [{ text: part.text }]
      case 'image':
        return [this.#image(part)]
      case 'document':
        return [this.#document(part)]
      case 'audio':
        return report.refuse(part.path, 'the target does not accept audio')
      case 'thinking':
      case 'redacted_thinking': {
        const value = valueFor(part.opaque, provider)
        if (value === null) {
          report.drop(`${part.path}.${part.type}`)
          return []
        }
        if (part.type === 'redacted_thinking') return [{ reasoningContent: { redactedContent: value } }]
        return [{ reasoningContent: { reasoningText: { text: part.text, signature: value } } }]
      }
      case 'tool_call':
        return [{ toolUse: { toolUseId: fittingToolId(part.id, TOOL_IDS), name: part.name, input: writeArguments(part, report) } }]
      case 'tool_result':
        return [this.#toolResult(part)]
    }
  }

  #toolResult({ callId, parts, isError }: ToolResultPart): JsonObject {
    const content = parts.flatMap(part => this.#blocks(part))
    return {
      toolResult: {
        toolUseId: fittingToolId(callId, TOOL_IDS),
        content: content.length === 0 ? [{ text: '(no output)' }] : content,
        ...isError && { status: 'error' },
      },
    }
  }

  #image(image: ImagePart): JsonObject {
    const { source, path } = image
    this.#context.report.dropDetail(image)
    const { mediaType, data } = this.#bytes(source, path)
    const format = mediaType.replace(/^image\//, '').replace(/^jpg$/, 'jpeg')
    if (!IMAGE_FORMATS.has(format)) this.#context.report.refuse(path, `the target accepts PNG, JPEG, GIF and WebP, not ${mediaType}`)
    return { image: { format, source: { bytes: data } } }
  }

  #document({ source, name, path }: DocumentPart): JsonObject {
    const { mediaType, data } = source.kind === 'text'
      ? { mediaType: 'text/plain', data: Buffer.from(source.text).toString('base64') }
      : this.#bytes(source, path)
    const format = DOCUMENT_FORMATS.get(mediaType.split(';', 1)[0] ?? '')
    if (format === undefined) this.#context.report.refuse(path, `the target does not accept documents of the type ${mediaType}`)
    this.#documents++
    // The API requires a name, which must be unique and may have only a few kinds of characters.
    const own = (name ?? '').replace(/[^a-zA-Z0-9 ()[\]-]+/g, '-').replace(/ {2,}/g, ' ').trim().slice(0, 100)
    return { document: { format, name: `${own === '' ? 'document' : own} (${this.#documents})`, source: { bytes: data } } }
  }

  #bytes(source: MediaSource, path: string): MediaSource & { readonly kind: 'base64' } {
    if (source.kind === 'base64') return source
    return this.#context.report.refuse(path, 'the target accepts neither URLs nor uploaded files; send the content as base64')
  }
}

/**
 * Adds text to a message that has a document but no text, because the API requires text (Amazon Bedrock API Reference, "DocumentBlock").
 */
function withDocumentText(turn: JsonObject): JsonObject {
  const content = asList(turn['content']).map(block => asObject(block) ?? {})
  if (!content.some(block => 'document' in block) || content.some(block => 'text' in block)) return turn
  const at = content.findIndex(block => 'document' in block)
  return { ...turn, content: content.toSpliced(at, 0, { text: 'The document:' }) }
}

export function cachePoint({ ttl }: CacheMark, model: string): JsonObject {
  return { cachePoint: { type: 'default', ...ttl !== null && makerOf(model).cache?.ttl === true && { ttl } } }
}
