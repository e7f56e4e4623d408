import type OpenAI from 'openai'
import t from 'tap'
import { CHAT_EMBEDDING_FIELDS } from '../../../src/protocols/chat/embeddings.ts'

t.test('every field of an embeddings request of the SDK has a rule', async t => {
  const fields: Readonly<Record<keyof OpenAI.EmbeddingCreateParams, string>> = CHAT_EMBEDDING_FIELDS
  t.ok(Object.keys(fields).length > 0)
})
