import type { Protocol } from '../endpoint/protocol.ts'
import { MESSAGES_FORMAT } from './errors.ts'
import { MESSAGES_FREE_WRITES, MESSAGES_PATHS, classifyMessages } from './paths.ts'
import { MESSAGES_TRANSLATION } from './translation.ts'
import { MESSAGES_EDITS } from './edits.ts'

export const MESSAGES: Protocol = {
  name: 'messages',
  format: MESSAGES_FORMAT,
  paths: MESSAGES_PATHS,
  classify: classifyMessages,
  freeWrites: MESSAGES_FREE_WRITES,
  isCaller: headers => headers['anthropic-version'] !== undefined || headers['vendorb-version'] !== undefined,
  textPath: () => '/v1/messages',
  translation: MESSAGES_TRANSLATION,
  edits: MESSAGES_EDITS,
}
