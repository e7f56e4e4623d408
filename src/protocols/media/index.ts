import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { Protocol } from '../endpoint/protocol.ts'
import { MEDIA_PATHS } from './paths.ts'

export const MEDIA: Protocol = { name: 'media', format: OPENAI_FORMAT, paths: MEDIA_PATHS }
