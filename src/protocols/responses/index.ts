import type { Protocol } from '../endpoint/protocol.ts'
import { RESPONSES_FORMAT } from './errors.ts'
import { RESPONSES_PATHS } from './paths.ts'
import { RESPONSES_TRANSLATION } from './translation.ts'
import { RESPONSES_EDITS } from './edits.ts'

export const RESPONSES: Protocol = {
  name: 'responses',
  format: RESPONSES_FORMAT,
  paths: RESPONSES_PATHS,
  freeWrites: /^\/v1\/responses\/[^/]+\/cancel$/,
  textPath: () => '/v1/responses',
  translation: RESPONSES_TRANSLATION,
  edits: RESPONSES_EDITS,
}
