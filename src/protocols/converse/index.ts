import type { Protocol } from '../endpoint/protocol.ts'
import { CONVERSE_FORMAT } from './errors.ts'
import { classifyConverse } from './paths.ts'
import { CONVERSE_TRANSLATION } from './translation.ts'

/** The API of Amazon Bedrock that is the same for all models. Only upstreams speak it: clients cannot use it. */import { CONVERSE_EDITS } from './edits.ts'

export const CONVERSE: Protocol = {
  name: 'converse', format: CONVERSE_FORMAT, paths: [], classify: classifyConverse, translation: CONVERSE_TRANSLATION,
  edits: CONVERSE_EDITS,
}
