import type { JsonObject } from '../neutral/json.ts'
import { readUsage } from '../usage/reported-usage.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { blankUsage } from '../usage/usage.ts'
import { eventIn, objectIn } from './realtime-event.ts'
import { TRANSCRIPT_USAGE } from './usage.ts'

const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * What is used in a realtime session to put into words what its client says. A model
 * of its own does that, which the session's settings name and whose price it has.
 *
 * Source: OpenAI's SDK, "ConversationItemInputAudioTranscriptionCompletedEvent".
 */
export class InputTranscripts {
  /** The model, as the settings have named it last. */
  model: string | null = null

  /** The session has these settings from now on. */
  applySettings(settings: JsonObject): void {
    this.model = modelIn(settings) ?? this.model
  }

  /** @returns what a transcript used, if the message is one */
  read(type: string, message: Buffer): ReportedUsage | null {
    if (type !== TRANSCRIBED) return null
    const { usage } = eventIn(message)
    return readUsage(TRANSCRIPT_USAGE, usage) ?? { usage: blankUsage(), suspect: false }
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
