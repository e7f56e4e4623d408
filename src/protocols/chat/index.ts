import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import { CHAT_EMBEDDINGS } from './embeddings.ts'
import type { Protocol } from '../endpoint/protocol.ts'
import { CHAT_PATHS } from './paths.ts'
import { CHAT_TRANSLATION } from './translation.ts'

export const CHAT: Protocol = {
  name: 'chat',
  format: OPENAI_FORMAT,
  paths: CHAT_PATHS,
  textPath: () => '/v1/chat/completions',
  translation: CHAT_TRANSLATION,
  embeddings: CHAT_EMBEDDINGS,
}
