import { chat } from './chat.ts'
import { generate } from './generate.ts'
import { messages } from './messages.ts'
import type { ProtocolName } from './names.ts'
import type { Protocol } from './protocol.ts'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { chat, messages, generate }
