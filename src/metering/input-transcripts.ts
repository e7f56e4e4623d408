import type { JsonObject } from './figures.ts'
import { readUsage } from './readers.ts'
import type { Reading } from './readers.ts'
import { eventIn, objectIn } from './realtime-event.ts'
import { blankUsage } from './usage.ts'

const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'
const SETTINGS = new Set([
  'session.created', 'session.updated', 'transcription_session.created', 'transcription_session.updated',
])

/**
 * What is used in a realtime session to put into words what its client says. A model
 * of its own does that, which the session's settings name and whose price it has.
 *
 * Source: OpenAI's SDK, "ConversationItemInputAudioTranscriptionCompletedEvent".
 */
export class InputTranscripts {
  /** The model, as the settings have named it last. */
  model: string | null = null

  /** @returns what a transcript used, if the message is one */
  read(type: string, message: Buffer): Reading | null {
    if (type === TRANSCRIBED) {
      const { usage } = eventIn(message)
      return readUsage('audio.transcriptions', usage) ?? { usage: blankUsage(), suspect: false }
    }
    if (SETTINGS.has(type)) this.model = modelIn(objectIn(eventIn(message), 'session')) ?? this.model
    return null
  }
}

/** The beta has the transcripts' settings at the top of the session's. */
function modelIn(session: JsonObject): string | null {
  const input = objectIn(objectIn(session, 'audio'), 'input')
  const { model } = 'transcription' in input
    ? objectIn(input, 'transcription')
    : objectIn(session, 'input_audio_transcription')
  return typeof model === 'string' ? model : null
}
