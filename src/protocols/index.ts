import { chat } from './chat/errors.ts'
import { generate } from './generate/errors.ts'
import { messages } from './messages/errors.ts'
import type { ProtocolName } from './shared/names.ts'
import type { Protocol } from './shared/protocol.ts'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { chat, messages, generate }
