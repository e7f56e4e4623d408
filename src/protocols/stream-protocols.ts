import { ChatStreamProtocol, asksForSeveralChats, chatObstacle, chatText } from './chat/continuation.ts'
import { GenerateStreamProtocol, asksForSeveralCandidates, generateObstacle, generateText } from './generate/continuation.ts'
import { MessagesStreamProtocol, messagesObstacle, messagesText } from './messages/continuation.ts'
import type { EndpointName } from './shared/names.ts'
import type { StreamProtocol, Json } from './shared/resumable-stream.ts'

/** What is known of an endpoint's streams. */
export interface StreamSupport {
  /** Makes what follows one answer to the request. */
  createProtocol(request: Json): StreamProtocol
  /** What one event adds to the text of the answer. */
  text(event: Json): string
  /** Why the request asks for something that cannot be continued; null = it does not. */
  obstacle(request: Json): string | null
  /** Does the request ask for more than one answer? */
  asksForSeveral(request: Json): boolean
}

/** The endpoints whose streams can be continued, or given the end that they lack. */
export const SUPPORTED_STREAMS: Readonly<Partial<Record<EndpointName, StreamSupport>>> = {
  'chat.completions': {
    createProtocol: request => new ChatStreamProtocol(request),
    text: chatText,
    obstacle: chatObstacle,
    asksForSeveral: asksForSeveralChats,
  },
  'messages': {
    createProtocol: () => new MessagesStreamProtocol(),
    text: messagesText,
    obstacle: messagesObstacle,
    asksForSeveral: () => false,
  },
  'generate.stream': {
    createProtocol: () => new GenerateStreamProtocol(),
    text: generateText,
    obstacle: generateObstacle,
    asksForSeveral: asksForSeveralCandidates,
  },
}
