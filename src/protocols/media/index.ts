import { OPENAI_FORMAT } from '../shared/openai-format.ts'
import type { Protocol } from '../shared/protocol.ts'
import { MEDIA_PATHS } from './paths.ts'

export const MEDIA: Protocol = {
  name: 'media',
  format: OPENAI_FORMAT,
  paths: MEDIA_PATHS,
}
