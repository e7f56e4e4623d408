import { readOpenaiError, writeOpenaiError } from '../neutral/dialects/openai-error.ts'
import type { Translation } from '../neutral/translation.ts'
import { CHAT_FIELDS, readChatRequest } from './read-request.ts'
import { ChatResponseReader } from './read-response.ts'
import { restoreChat } from './restore.ts'
import { CHAT_SUPPORT, writeChatRequest } from './write-request.ts'
import { ChatResponseWriter, writeChatBody } from './write-response.ts'

export const CHAT_TRANSLATION: Translation = {
  endpoints: ['chat.completions'],
  client: {
    fields: CHAT_FIELDS,
    readRequest: readChatRequest,
    createWriter: context => new ChatResponseWriter(context),
    writeBody: writeChatBody,
    requestIdHeader: 'x-request-id',
    writeError: writeOpenaiError,
  },
  upstream: {
    support: CHAT_SUPPORT,
    // Only OpenAI's own chat API accepts freeform tools.
    takesFreeformTools: false,
    writeRequest: writeChatRequest,
    restore: restoreChat,
    createReader: provider => new ChatResponseReader(provider),
    readError: readOpenaiError,
  },
}
