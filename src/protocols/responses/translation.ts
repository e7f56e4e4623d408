import { writeOpenaiError } from '../neutral/dialects/openai-error.ts'
import type { Translation } from '../neutral/translation.ts'
import { readResponsesError } from './errors.ts'
import { RESPONSES_FIELDS, readResponsesRequest } from './read-request.ts'
import { ResponsesResponseReader } from './read-response.ts'
import { restoreResponses } from './restore.ts'
import { RESPONSES_SUPPORT, writeResponsesRequest } from './write-request.ts'
import { ResponsesResponseWriter, writeResponsesBody } from './write-response.ts'

export const RESPONSES_TRANSLATION: Translation = {
  endpoints: ['responses'],
  client: {
    fields: RESPONSES_FIELDS,
    readRequest: readResponsesRequest,
    createWriter: context => new ResponsesResponseWriter(context),
    writeBody: writeResponsesBody,
    requestIdHeader: 'x-request-id',
    writeError: writeOpenaiError,
  },
  upstream: {
    support: RESPONSES_SUPPORT,
    takesFreeformTools: true,
    writeRequest: writeResponsesRequest,
    restore: restoreResponses,
    createReader: provider => new ResponsesResponseReader(provider),
    readError: readResponsesError,
  },
}
