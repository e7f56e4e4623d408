import type { Translation } from '../neutral/translation.ts'
import { camelCase } from './camel-case.ts'
import { GENERATE_FIELDS, readGenerateRequest } from './read-request.ts'
import { GenerateResponseReader, readGenerateError } from './read-response.ts'
import { restoreGenerate } from './restore.ts'
import { GENERATE_SUPPORT, writeGenerateRequest } from './write-request.ts'
import { GenerateResponseWriter, writeGenerateBody, writeGenerateError } from './write-response.ts'

export const GENERATE_TRANSLATION: Translation = {
  endpoints: ['generate.content', 'generate.stream'],
  client: {
    fields: GENERATE_FIELDS,
    normalize: camelCase,
    readRequest: readGenerateRequest,
    createWriter: context => new GenerateResponseWriter(context),
    writeBody: writeGenerateBody,
    requestIdHeader: 'x-request-id',
    writeError: writeGenerateError,
  },
  upstream: {
    support: GENERATE_SUPPORT,
    takesFreeformTools: false,
    writeRequest: writeGenerateRequest,
    restore: restoreGenerate,
    createReader: provider => new GenerateResponseReader(provider),
    readError: readGenerateError,
  },
}
