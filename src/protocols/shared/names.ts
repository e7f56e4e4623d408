/** The three protocol families of the specification. */
export type ProtocolName = 'chat' | 'messages' | 'generate'

/**
 * Every endpoint that the gateway knows by name. `other` is any further path
 * that a route sends somewhere: it is forwarded as it is.
 */
export type EndpointName =
  | 'chat.completions'
  | 'completions'
  | 'responses'
  | 'responses.compact'
  | 'responses.input_tokens'
  | 'decisions'
  | 'embeddings'
  | 'images.generations'
  | 'images.edits'
  | 'audio.transcriptions'
  | 'audio.translations'
  | 'audio.speech'
  | 'realtime'
  | 'messages'
  | 'messages.count_tokens'
  | 'generate.content'
  | 'generate.stream'
  | 'generate.count_tokens'
  | 'generate.embed'
  | 'generate.batch_embed'
  | 'generate.operation'
  | 'interactions'
  | 'models.list'
  | 'models.get'
  | 'status'
  | 'other'
