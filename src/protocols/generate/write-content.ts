import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import { valueFor } from '../neutral/opaque.ts'
import { plainText } from '../neutral/plain-text.ts'
import type { TranslationReport } from '../neutral/report.ts'
import type { MediaSource, Message, Part, ToolCallPart, ToolResultPart } from '../neutral/request.ts'
import { resultHeading, writeArguments } from '../neutral/tools.ts'
import type { WriteContext } from '../neutral/translation.ts'
import { takesThinkingLevel } from './thinking.ts'

/**
 * Sent with calls that have no signature: Gemini 3 refuses a call without one (https://ai.google.dev/gemini-api/docs/thought-signatures).
 */
export const NO_SIGNATURE = 'skip_thought_signature_validator'

/** @param turns with alternating roles */
export function writeContents(turns: readonly Message[], context: WriteContext): JsonObject[] {
  return turns.flatMap(({ role, parts }, n) => {
    const calls = (turns[n - 1]?.parts ?? []).filter(part => part.type === 'tool_call')
    const written = role === 'assistant' ? writeModel(parts, context) : writeUser(parts, calls, context)
    return written.length === 0 ? [] : [{ role: role === 'assistant' ? 'model' : 'user', parts: written }]
  })
}

function writeModel(parts: readonly Part[], { provider, model, report }: WriteContext): JsonObject[] {
  // Gemini requires a signature only in the first of parallel calls.
  let needsSignature = takesThinkingLevel(model)
  return parts.flatMap((part): JsonObject[] => {
    reportMark(part, report)
    switch (part.type) {
      case 'thinking': {
        const signature = valueFor(part.opaque, provider)
        if (signature !== null) return [{ text: part.text, thought: true, thoughtSignature: signature }]
        report.drop(`${part.path}.thinking`)
        return []
      }
      case 'redacted_thinking': {
        const signature = valueFor(part.opaque, provider)
        if (signature !== null) return [{ text: '', thoughtSignature: signature }]
        report.drop(`${part.path}.redacted_thinking`)
        return []
      }
      case 'tool_call': {
        const signature = valueFor(part.opaque, provider) ?? (needsSignature ? NO_SIGNATURE : null)
        needsSignature = false
        return [withoutNulls({ functionCall: writeCall(part, report), thoughtSignature: signature })]
      }
      default: return writeContent(part, report)
    }
  })
}

function writeCall(call: ToolCallPart, report: TranslationReport): JsonObject {
  return withoutNulls({ id: call.id === '' ? null : call.id, name: call.name, args: writeArguments(call, report) })
}

/** Writes one result for each call, in the order of the calls. Then writes the user's other content, and the results without a call. */
function writeUser(parts: readonly Part[], calls: readonly ToolCallPart[], { model, report }: WriteContext): JsonObject[] {
  const results = Map.groupBy(parts.filter(part => part.type === 'tool_result').toReversed(), ({ callId }) => callId)
  // Gemini 3 and later accept media in a result (https://ai.google.dev/gemini-api/docs/function-calling).
  const takesMedia = takesThinkingLevel(model)
  const media: JsonObject[] = []
  const responses = calls.map(call => {
    // If several calls have the same id, the results with that id belong to the calls in order.
    const result = results.get(call.id)?.pop()
    if (result === undefined) return writeResponse(call, { error: 'There is no result.' })
    const own = result.parts.flatMap(part => plainText(part) === null ? writeContent(part, report) : [])
    if (!takesMedia && own.length > 0) media.push({ text: resultHeading(result) }, ...own)
    return writeResult(call, result, takesMedia ? own : [])
  })
  const left = new Set([...results.values()].flat())
  const rest = parts.flatMap((part): JsonObject[] => {
    reportMark(part, report)
    if (part.type !== 'tool_result') return writeContent(part, report)
    if (!left.has(part)) return []
    return [{ text: resultHeading(part) }, ...part.parts.flatMap(inner => writeContent(inner, report))]
  })
  return [...responses, ...media, ...rest]
}

function writeResult(call: ToolCallPart, { parts, isError }: ToolResultPart, media: readonly JsonObject[]): JsonObject {
  const text = parts.map(plainText).filter(each => each !== null).join('\n')
  return writeResponse(call, isError ? { error: text } : { output: text }, media)
}

function writeResponse({ id, name }: ToolCallPart, response: JsonObject, media: readonly JsonObject[] = []): JsonObject {
  return { functionResponse: withoutNulls({ id: id === '' ? null : id, name, response, parts: media.length === 0 ? null : media }) }
}

function writeContent(part: Part, report: TranslationReport): JsonObject[] {
  switch (part.type) {
    case 'text':
    case 'refusal': return part.text === '' ? [] : [{ text: part.text }]
    case 'image':
      report.dropDetail(part)
      return [writeMedia(part.source, part.path, report)]
    case 'audio': return [writeMedia(part.source, part.path, report)]
    case 'document': {
      const { source, name, path } = part
      if (source.kind === 'text') return [{ text: name === null ? source.text : `${name}\n\n${source.text}` }]
      return [writeMedia(source, path, report)]
    }
    default:
      report.drop(`${part.path}.${part.type}`)
      return []
  }
}

const MEDIA_TYPES: ReadonlyMap<string, string> = new Map(Object.entries({
  png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', webp: 'image/webp', gif: 'image/gif', heic: 'image/heic', pdf: 'application/pdf',
}))

function writeMedia(source: MediaSource, path: string, report: TranslationReport): JsonObject {
  switch (source.kind) {
    case 'base64': return { inlineData: { mimeType: source.mediaType, data: source.data } }
    case 'url': {
      // Gemini itself downloads public URLs.
      const ending = /\.([a-z]{1,5})(?:[?#]|$)/i.exec(source.url)?.[1]?.toLowerCase() ?? ''
      return { fileData: withoutNulls({ fileUri: source.url, mimeType: source.mediaType ?? MEDIA_TYPES.get(ending) }) }
    }
    case 'file': return report.refuse(path, 'a file uploaded to one provider does not exist at another; send its content as base64')
  }
}

function reportMark({ cache, path }: Part, report: TranslationReport): void {
  if (cache !== null) report.drop(`${path}.cache_control`)
}
