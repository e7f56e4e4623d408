import type { EndpointName } from './shared/names.ts'
import { ChatDialect, asksForSeveralChats, chatObstacle, chatText } from './chat/continuation.ts'
import { GenerateDialect, asksForSeveralCandidates, generateObstacle, generateText } from './generate/continuation.ts'
import { MessagesDialect, messagesObstacle, messagesText } from './messages/continuation.ts'
import type { Dialect, Json } from './shared/resumable-stream.ts'

/** What is known of an endpoint's streams. */
export interface KnownStream {
  /** Makes what follows one answer to the request. */
  dialect(request: Json): Dialect
  /** What one event adds to the text of the answer. */
  text(event: Json): string
  /** Why the request asks for something that cannot be continued; null = it does not. */
  obstacle(request: Json): string | null
  /** Does the request ask for more than one answer? */
  asksForSeveral(request: Json): boolean
}

/** The endpoints whose streams can be continued, or given the end that they lack. */
export const STREAMS: Readonly<Partial<Record<EndpointName, KnownStream>>> = {
  'chat.completions': {
    dialect: request => new ChatDialect(request),
    text: chatText,
    obstacle: chatObstacle,
    asksForSeveral: asksForSeveralChats,
  },
  'messages': {
    dialect: () => new MessagesDialect(),
    text: messagesText,
    obstacle: messagesObstacle,
    asksForSeveral: () => false,
  },
  'generate.stream': {
    dialect: () => new GenerateDialect(),
    text: generateText,
    obstacle: generateObstacle,
    asksForSeveral: asksForSeveralCandidates,
  },
}
