import { Type } from 'typebox'
import type { Static } from 'typebox'
import { Closed, Moment, Name, Nullable, Word } from './shapes.ts'

/** A body as far as it was kept. */
export const Body = Closed({
  content_type: Nullable(Type.String()),
  bytes: Type.Integer({ minimum: 0, description: 'Of the whole body' }),
  is_cut: Type.Boolean({ description: 'Only its beginning was kept' }),
  coding: Word(['text', 'base64'], 'base64: what is no text in UTF-8'),
  content: Type.String(),
})
export type Body = Static<typeof Body>

/** What `log.bodies` has kept of a request. */
export const Bodies = Closed({
  transcripts: Type.Array(Closed({
    request_id: Type.String(),
    started_at: Moment,
    key: Name,
    expires_at: Moment,
    request: Body,
    answer: Body,
  })),
})
export type Bodies = Static<typeof Bodies>
