import { GENERATE_EMBEDDINGS } from './embeddings.ts'
import type { Protocol } from '../endpoint/protocol.ts'
import { GENERATE_FORMAT } from './errors.ts'
import { GENERATE_FREE_WRITES, GENERATE_MODEL_PATHS, GENERATE_PATHS, classifyGenerate } from './paths.ts'
import { GENERATE_TRANSLATION } from './translation.ts'
import { GENERATE_EDITS } from './edits.ts'

export const GENERATE: Protocol = {
  name: 'generate',
  format: GENERATE_FORMAT,
  paths: GENERATE_PATHS,
  modelPaths: GENERATE_MODEL_PATHS,
  classify: classifyGenerate,
  freeWrites: GENERATE_FREE_WRITES,
  // Google's live API. The first message names the model, even if the query names one too.
  modelInMessage: /bidigeneratecontent/i,
  isCaller: (headers, hasGoogleKey) => hasGoogleKey || headers['x-goog-api-key'] !== undefined,
  textPath: model => `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
  translation: GENERATE_TRANSLATION,
  embeddings: GENERATE_EMBEDDINGS,
  edits: GENERATE_EDITS,
}
