import { ChunkMeter } from './meter.ts'
import { defineEndpoint, modelCardEndpoint, modelCardPath, modelListEndpoint, otherEndpoint, withoutPathModel } from '../endpoint/classified.ts'
import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { Classified, KnownPath, StreamSupport } from '../endpoint/protocol.ts'
import { ChatStreamProtocol, asksForSeveralChats, chatObstacle, chatText, createChatCallReader } from './continuation.ts'
import { CHAT_USAGE, EMBEDDING_USAGE } from './usage.ts'
import { USAGE_OPTION } from './usage-option.ts'

const format = OPENAI_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: request => new ChatStreamProtocol(request), text: chatText, obstacle: chatObstacle,
  asksForSeveral: asksForSeveralChats, createCallReader: createChatCallReader, endsWithEach: false,
}

const TEXT = {
  format, modelRequired: true, metering: 'text', responseMembers: ['choices'], respondsWithJson: true, usage: CHAT_USAGE,
  outputBounds: ['max_tokens', 'max_completion_tokens'], usageOption: USAGE_OPTION,
  createMeter: limits => new ChunkMeter(CHAT_USAGE, limits),
} as const satisfies Partial<Parameters<typeof defineEndpoint>[0]>

const MODEL_CARD = modelCardEndpoint(format, true)

export const CHAT_PATHS: readonly KnownPath[] = [
  ['/v1/chat/completions', defineEndpoint({ ...TEXT, name: 'chat.completions', prompt: { members: ['messages'] }, streams: STREAMS })],
  ['/v1/completions', defineEndpoint({
    ...TEXT, name: 'completions', prompt: { members: ['prompt', 'suffix'] }, respondsToEachPrompt: true, outputBounds: ['max_tokens'],
  })],
  ['/v1/embeddings', defineEndpoint({
    name: 'embeddings', format, modelRequired: true, metering: 'embedding', prompt: { members: ['input'] },
    generatesTokens: false, respondsWithJson: true, usage: EMBEDDING_USAGE,
  })],
  ['/v1/models', modelListEndpoint(format, true)],
]

export const CHAT_MODEL_PATHS: readonly KnownPath[] = [['/v1/models/{model}', MODEL_CARD]]

/** Writes that cost nothing. */
export const CHAT_FREE_WRITES = new RegExp([
  '^/v1/(?:files|uploads(?:/[^/]+/(?:parts|complete|cancel))?|conversations(?:/[^/]+(?:/items)?)?)$',
  '^/v1/(?:batches|fine_tuning/jobs|(?:threads|evals)/[^/]+/runs)/[^/]+/cancel$',
].join('|'))

/** Paths of requests that call a model although the request does not name one. */
export const CHAT_MODEL_CALLS = new RegExp(
  '/(?:batches|images/variations|videos(?:/edits|/extensions|/[^/]+/remix)?|(?:threads|evals)(?:/[^/]+)?/runs'
  + '|submit_tool_outputs|realtime/calls)/?(?:;[^/]*)?$',
  'i',
)

const BATCH = withoutPathModel(otherEndpoint(format, { formatByCaller: true, isBatch: true }))
const BATCH_PATH = /^\/v1\/batches(?:[/;]|$)/

export function classifyChat(path: string, plain: string): Classified | null {
  if (plain.startsWith('/v1/models/')) return modelCardPath(path, '/v1/models/', MODEL_CARD)
  return BATCH_PATH.test(plain) ? BATCH : null
}
