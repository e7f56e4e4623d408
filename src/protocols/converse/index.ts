import type { Protocol } from '../endpoint/protocol.ts'
import { CONVERSE_FORMAT } from './errors.ts'
import { classifyConverse } from './paths.ts'
import { CONVERSE_TRANSLATION } from './translation.ts'

/** Amazon Bedrock's own API for all its models: only upstreams speak it. */
export const CONVERSE: Protocol = {
  name: 'converse', format: CONVERSE_FORMAT, paths: [], classify: classifyConverse, translation: CONVERSE_TRANSLATION,
}
