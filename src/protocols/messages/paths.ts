import { defineEndpoint, otherEndpoint, withoutPathModel } from '../endpoint/classified.ts'
import { OPERATIONS, PUBLISHER_PATH, verbPath } from '../endpoint/google-paths.ts'
import type { Classified, Endpoint, KnownPath, StreamSupport } from '../endpoint/protocol.ts'
import { MessagesStreamProtocol, messagesObstacle, messagesText, createMessagesCallReader } from './continuation.ts'
import { MESSAGES_FORMAT } from './errors.ts'
import { MessagesMeter } from './meter.ts'
import { MESSAGES_USAGE } from './usage.ts'

const format = MESSAGES_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: () => new MessagesStreamProtocol(), text: messagesText, obstacle: messagesObstacle,
  asksForSeveral: () => false, createCallReader: createMessagesCallReader, endsWithEach: false,
}

const MESSAGES = defineEndpoint({
  name: 'messages', format, modelRequired: true, metering: 'text', prompt: { members: ['system', 'messages'] },
  responseMembers: ['content'], outputBounds: ['max_tokens'], boundsThinking: true, respondsWithJson: true,
  usage: MESSAGES_USAGE, createMeter: limits => new MessagesMeter(limits), streams: STREAMS,
})

const COUNT_TOKENS = defineEndpoint({
  name: 'messages.count_tokens', format, modelRequired: true, generatesTokens: false, respondsWithJson: true,
  prompt: { members: ['system', 'messages'] }, tokenCount: tokens => JSON.stringify({ input_tokens: tokens }),
})

export const MESSAGES_PATHS: readonly KnownPath[] = [['/v1/messages', MESSAGES], ['/v1/messages/count_tokens', COUNT_TOKENS]]

const OTHER = withoutPathModel(otherEndpoint(format))
const BATCH = withoutPathModel(otherEndpoint(format, { isBatch: true }))

/** Writes that cost nothing. */
export const MESSAGES_FREE_WRITES = /^\/v1\/messages\/batches\/[^/]+\/cancel$/

/** Claude at Vertex AI: the path contains the model, and the body has the format of this protocol. */
const RAW_VERBS = new Map<string, Endpoint>(['rawpredict', 'streamrawpredict'].map(verb => [verb, { ...MESSAGES, modelIn: 'path' }]))
const RAW_COUNT_TOKENS = /^count-tokens(?::|%3a)rawpredict/

export function classifyMessages(path: string, plain: string): Classified | null {
  const published = PUBLISHER_PATH.exec(plain)
  if (published?.[1] === 'anthropic') return claudePath(path, plain, published[0].length)
  if (!plain.startsWith('/v1/messages')) return null
  return /^\/v1\/messages\/batches(?:[/;]|$)/.test(plain) ? BATCH : OTHER
}

function claudePath(path: string, plain: string, modelStart: number): Classified | null {
  if (RAW_COUNT_TOKENS.test(plain.slice(modelStart))) return withoutPathModel(COUNT_TOKENS)
  return plain.includes(OPERATIONS, modelStart + 1) ? null : verbPath(path, plain, modelStart, RAW_VERBS)
}
