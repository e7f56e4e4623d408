import type { Translation } from '../neutral/translation.ts'
import { readConverseError } from './errors.ts'
import { ConverseResponseReader } from './read-response.ts'
import { CONVERSE_SUPPORT, writeConverseRequest } from './write-request.ts'

export const CONVERSE_TRANSLATION: Translation = {
  endpoints: ['converse'],
  client: null,
  upstream: {
    support: CONVERSE_SUPPORT,
    takesFreeformTools: false,
    writeRequest: writeConverseRequest,
    // Every conversation is translated, so no request contains ids to restore.
    restore: () => null,
    createReader: provider => new ConverseResponseReader(provider),
    readError: readConverseError,
  },
}
