import { defineEndpoint, otherEndpoint, withoutPathModel } from '../endpoint/classified.ts'
import type { Classified, KnownPath, StreamSupport } from '../endpoint/protocol.ts'
import { MessagesStreamProtocol, messagesObstacle, messagesText } from './continuation.ts'
import { MESSAGES_FORMAT } from './errors.ts'
import { MessagesMeter } from './meter.ts'
import { MESSAGES_USAGE } from './usage.ts'

const format = MESSAGES_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: () => new MessagesStreamProtocol(),
  text: messagesText,
  obstacle: messagesObstacle,
  asksForSeveral: () => false,
  endsWithEach: false,
}

export const MESSAGES = defineEndpoint({
  name: 'messages',
  format,
  modelRequired: true,
  metering: 'text',
  prompt: { members: ['system', 'messages'] },
  responseMembers: ['content'],
  outputBounds: ['max_tokens'],
  boundsThinking: true,
  respondsWithJson: true,
  usage: MESSAGES_USAGE,
  createMeter: limits => new MessagesMeter(limits),
  streams: STREAMS,
})

export const COUNT_TOKENS = defineEndpoint({
  name: 'messages.count_tokens', format, modelRequired: true, generatesTokens: false, respondsWithJson: true,
  prompt: { members: ['system', 'messages'] }, tokenCount: tokens => JSON.stringify({ input_tokens: tokens }),
})

export const MESSAGES_PATHS: readonly KnownPath[] = [
  ['/v1/messages', MESSAGES],
  ['/v1/messages/count_tokens', COUNT_TOKENS],
]

const OTHER = withoutPathModel(otherEndpoint(format))
const BATCH = withoutPathModel(otherEndpoint(format, { isBatch: true }))

export function classifyMessages(_path: string, plain: string): Classified | null {
  if (!plain.startsWith('/v1/messages')) return null
  return /^\/v1\/messages\/batches(?:[/;]|$)/.test(plain) ? BATCH : OTHER
}
