import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import { CHAT_EMBEDDINGS } from './embeddings.ts'
import type { Protocol } from '../endpoint/protocol.ts'
import { CHAT_FREE_WRITES, CHAT_MODEL_CALLS, CHAT_MODEL_PATHS, CHAT_PATHS, classifyChat } from './paths.ts'
import { CHAT_TRANSLATION } from './translation.ts'
import { CHAT_EDITS } from './edits.ts'

export const CHAT: Protocol = {
  name: 'chat',
  format: OPENAI_FORMAT,
  paths: CHAT_PATHS,
  modelPaths: CHAT_MODEL_PATHS,
  classify: classifyChat,
  freeWrites: CHAT_FREE_WRITES,
  modelCalls: CHAT_MODEL_CALLS,
  textPath: () => '/v1/chat/completions',
  translation: CHAT_TRANSLATION,
  embeddings: CHAT_EMBEDDINGS,
  edits: CHAT_EDITS,
}
