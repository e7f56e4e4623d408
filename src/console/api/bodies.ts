import { Type, type Static } from 'typebox'
import { StrictObject, Timestamp, Name, Nullable, StringEnum } from './shapes.ts'

export const Body = StrictObject({
  content_type: Nullable(Type.String()),
  bytes: Type.Integer({ minimum: 0, description: 'Size of the whole body' }),
  is_cut: Type.Boolean({ description: 'Only the beginning was kept' }),
  coding: StringEnum(['text', 'base64'], 'base64: content that is not UTF-8 text'),
  content: Type.String(),
})
export type Body = Static<typeof Body>

export const Bodies = StrictObject({
  transcripts: Type.Array(StrictObject({
    request_id: Type.String(), started_at: Timestamp, key: Name, expires_at: Timestamp, request: Body, answer: Body,
  })),
})
export type Bodies = Static<typeof Bodies>
