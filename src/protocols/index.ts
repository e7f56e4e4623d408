import { CHAT } from './chat/index.ts'
import { CONVERSE } from './converse/index.ts'
import { GENERATE } from './generate/index.ts'
import { MEDIA } from './media/index.ts'
import { MESSAGES } from './messages/index.ts'
import { RESPONSES } from './responses/index.ts'
import type { Protocol } from './endpoint/protocol.ts'

/** All wire protocols. To add a protocol, add its folder and list it here. Paths that no protocol recognises belong to the first. */
export const PROTOCOLS: readonly Protocol[] = [CHAT, RESPONSES, MEDIA, MESSAGES, GENERATE, CONVERSE]
