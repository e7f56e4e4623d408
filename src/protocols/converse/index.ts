import type { Protocol } from '../endpoint/protocol.ts'
import { CONVERSE_FORMAT } from './errors.ts'
import { classifyConverse } from './paths.ts'
import { CONVERSE_TRANSLATION } from './translation.ts'

/** Amazon Bedrock's own API, for the models of all makers: upstreams speak it, and clients do not. */
export const CONVERSE: Protocol = {
  name: 'converse',
  format: CONVERSE_FORMAT,
  paths: [],
  classify: classifyConverse,
  translation: CONVERSE_TRANSLATION,
}
