import type { Translation } from '../neutral/translation.ts'
import { MESSAGES_FIELDS, readMessagesRequest } from './read-request.ts'
import { MessagesResponseReader, readMessagesError } from './read-response.ts'
import { restoreMessages } from './restore.ts'
import { MESSAGES_SUPPORT, writeMessagesRequest } from './write-request.ts'
import { MessagesResponseWriter, writeMessagesBody, writeMessagesError } from './write-response.ts'

export const MESSAGES_TRANSLATION: Translation = {
  endpoints: ['messages'],
  client: {
    fields: MESSAGES_FIELDS,
    readRequest: readMessagesRequest,
    createWriter: context => new MessagesResponseWriter(context),
    writeBody: writeMessagesBody,
    requestIdHeader: 'request-id',
    writeError: writeMessagesError,
  },
  upstream: {
    support: MESSAGES_SUPPORT,
    takesFreeformTools: false,
    writeRequest: writeMessagesRequest,
    restore: restoreMessages,
    createReader: provider => new MessagesResponseReader(provider),
    readError: readMessagesError,
  },
}
