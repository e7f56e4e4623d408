import type { JsonObject } from '../neutral/json.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import { blankUsage } from '../usage/usage.ts'
import { eventIn, objectIn } from './realtime-event.ts'
import { TRANSCRIPT_USAGE } from './usage.ts'

const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * The usage for transcribing the client's speech in a realtime session. The session's settings name a separate model
 * for transcription, with its own price.
 *
 * Source: OpenAI's SDK, "ConversationItemInputAudioTranscriptionCompletedEvent".
 */
export class InputTranscripts {
  /** The model that the settings named last. */
  model: string | null = null

  /** Applies new settings of the session. */
  applySettings(settings: JsonObject): void {
    this.model = modelIn(settings) ?? this.model
  }

  /** @returns the usage of a transcript, if the message is one */
  read(type: string, message: Buffer): ReportedUsage | null {
    if (type !== TRANSCRIBED) return null
    const { usage } = eventIn(message)
    return readUsage(TRANSCRIPT_USAGE, usage) ?? { usage: blankUsage(), suspect: false }
  }
}

/** The beta API has the transcription settings at the top level of the session's. */
function modelIn(session: JsonObject): string | null {
  const input = objectIn(objectIn(session, 'audio'), 'input')
  const { model } = 'transcription' in input
    ? objectIn(input, 'transcription')
    : objectIn(session, 'input_audio_transcription')
  return typeof model === 'string' ? model : null
}
