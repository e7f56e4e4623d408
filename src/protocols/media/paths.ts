import { READ, defineEndpoint, type EndpointOptions } from '../endpoint/classified.ts'
import { OPENAI_FORMAT } from '../endpoint/openai-format.ts'
import type { KnownPath } from '../endpoint/protocol.ts'
import { IMAGE_EVENTS, REALTIME_EVENTS, SPEECH_EVENTS, TypedMeter } from '../responses/meter.ts'
import { RealtimeConversation } from './realtime-conversation.ts'
import { TranscriptMeter } from './transcript-meter.ts'
import { IMAGE_USAGE, REALTIME_USAGE, SPEECH_USAGE, TRANSCRIPT_USAGE } from './usage.ts'

const format = OPENAI_FORMAT

const IMAGES = {
  format, metering: 'images', prompt: { members: ['prompt'] }, respondsWithJson: true, usage: IMAGE_USAGE, hasLargeEvents: true,
  createMeter: limits => new TypedMeter(IMAGE_USAGE, IMAGE_EVENTS, limits),
} as const satisfies EndpointOptions

const TRANSCRIPTS = {
  format, body: 'form', modelRequired: true, metering: 'transcript', usage: TRANSCRIPT_USAGE,
  createMeter: limits => new TranscriptMeter(TRANSCRIPT_USAGE, limits),
} as const satisfies EndpointOptions

export const MEDIA_PATHS: readonly KnownPath[] = [
  ['/v1/images/generations', defineEndpoint({ ...IMAGES, name: 'images.generations' })],
  ['/v1/images/edits', defineEndpoint({ ...IMAGES, name: 'images.edits', body: 'json_or_form' })],
  ['/v1/audio/transcriptions', defineEndpoint({ ...TRANSCRIPTS, name: 'audio.transcriptions' })],
  ['/v1/audio/translations', defineEndpoint({ ...TRANSCRIPTS, name: 'audio.translations' })],
  ['/v1/audio/speech', defineEndpoint({
    name: 'audio.speech', format, modelRequired: true, metering: 'speech', prompt: { members: ['input', 'instructions'] }, usage: SPEECH_USAGE,
    createMeter: limits => new TypedMeter(SPEECH_USAGE, SPEECH_EVENTS, limits),
  })],
  ['/v1/realtime', defineEndpoint({
    name: 'realtime', format, methods: READ, body: 'none', modelIn: 'query', metering: 'unmetered',
    session: { required: true, laneKey: Buffer.from('response_id'), createConversation: () => new RealtimeConversation() },
    outputBounds: ['response.max_output_tokens', 'response.max_response_output_tokens', 'session.max_output_tokens', 'session.max_response_output_tokens'],
    usage: REALTIME_USAGE,
    createMeter: limits => new TypedMeter(REALTIME_USAGE, REALTIME_EVENTS, limits),
  })],
]
