import { ChunkMeter } from './meter.ts'
import { defineEndpoint, modelCardEndpoint, modelCardPath, modelListEndpoint, otherEndpoint, withoutPathModel } from '../endpoint/classified.ts'
import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { Classified, KnownPath, StreamSupport } from '../endpoint/protocol.ts'
import { ChatStreamProtocol, asksForSeveralChats, chatObstacle, chatText } from './continuation.ts'
import { CHAT_USAGE, EMBEDDING_USAGE } from './usage.ts'
import { USAGE_OPTION } from './usage-option.ts'

const format = OPENAI_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: request => new ChatStreamProtocol(request),
  text: chatText,
  obstacle: chatObstacle,
  asksForSeveral: asksForSeveralChats,
  endsWithEach: false,
}

const TEXT = {
  format,
  modelRequired: true,
  metering: 'text',
  responseMembers: ['choices'],
  outputBounds: ['max_tokens', 'max_completion_tokens'],
  usageOption: USAGE_OPTION,
  respondsWithJson: true,
  usage: CHAT_USAGE,
  createMeter: limits => new ChunkMeter(CHAT_USAGE, limits),
} as const satisfies Partial<Parameters<typeof defineEndpoint>[0]>

/** The endpoint of paths that no protocol knows, with errors in this protocol's format or the caller's. */
export const CHAT_OTHER = otherEndpoint(format, { formatByCaller: true })

export const CHAT_MODEL_CARD = modelCardEndpoint(format, true)

export const CHAT_PATHS: readonly KnownPath[] = [
  ['/v1/chat/completions', defineEndpoint({
    ...TEXT, name: 'chat.completions', prompt: { members: ['messages'] }, streams: STREAMS,
  })],
  ['/v1/completions', defineEndpoint({
    ...TEXT, name: 'completions', prompt: { members: ['prompt', 'suffix'] }, respondsToEachPrompt: true,
  })],
  ['/v1/embeddings', defineEndpoint({
    name: 'embeddings', format, modelRequired: true, metering: 'embedding', prompt: { members: ['input'] },
    generatesTokens: false, respondsWithJson: true, usage: EMBEDDING_USAGE,
  })],
  ['/v1/models', modelListEndpoint(format, true)],
]

export const OTHER = withoutPathModel(CHAT_OTHER)
const BATCH = withoutPathModel({ ...CHAT_OTHER, isBatch: true })

/** Paths of batches. */
export const BATCH_PATH = /^\/v1\/batches(?:[/;]|$)/

/** Classifies paths that no other protocol knows. */
export function classifyChat(path: string, plain: string): Classified {
  if (plain.startsWith('/v1/models/')) return modelCardPath(path, '/v1/models/', CHAT_MODEL_CARD) ?? OTHER
  return BATCH_PATH.test(plain) ? BATCH : OTHER
}
