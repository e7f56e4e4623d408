import { POST, READ, withoutPathModel } from './classified.ts'
import type { Classified } from './classified.ts'

/** What is known by its whole path. */
export const KNOWN_PATHS = new Map<string, Classified>(
  (
    [
      ['/v1/chat/completions', 'chat.completions', 'chat', POST, 'json', 'body', true],
      ['/v1/completions', 'completions', 'chat', POST, 'json', 'body', true],
      ['/v1/responses', 'responses', 'chat', POST, 'json', 'body', false],
      ['/v1/responses/compact', 'responses.compact', 'chat', POST, 'json', 'body', false],
      ['/v1/responses/input_tokens', 'responses.input_tokens', 'chat', POST, 'json', 'body', false],
      ['/v1/decisions', 'decisions', 'chat', POST, 'json', 'body', true],
      ['/v1/embeddings', 'embeddings', 'chat', POST, 'json', 'body', true],
      ['/v1/images/generations', 'images.generations', 'chat', POST, 'json', 'body', false],
      ['/v1/images/edits', 'images.edits', 'chat', POST, 'json_or_form', 'body', false],
      ['/v1/audio/transcriptions', 'audio.transcriptions', 'chat', POST, 'form', 'body', true],
      ['/v1/audio/translations', 'audio.translations', 'chat', POST, 'form', 'body', true],
      ['/v1/audio/speech', 'audio.speech', 'chat', POST, 'json', 'body', true],
      ['/v1/realtime', 'realtime', 'chat', READ, 'none', 'query', false],
      ['/v1/messages', 'messages', 'messages', POST, 'json', 'body', true],
      ['/v1/messages/count_tokens', 'messages.count_tokens', 'messages', POST, 'json', 'body', true],
      ['/v1/models', 'models.list', 'chat', READ, 'none', 'none', false],
      ['/v1beta/models', 'models.list', 'generate', READ, 'none', 'none', false],
      ['/v1beta/interactions', 'interactions', 'generate', POST, 'json', 'body', false],
      ['/api/status', 'status', 'chat', READ, 'none', 'none', false],
    ] as const
  ).map(([path, name, protocol, methods, body, modelIn, modelRequired]) => [
    path,
    withoutPathModel({ name, protocol, methods, body, modelIn, modelRequired }),
  ]),
)

/** Work that is done later, in either family that has such paths. */
export const BATCH_PATH = /^\/v1\/(?:messages\/)?batches(?:[/;]|$)/
