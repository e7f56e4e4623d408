import type { JsonObject } from '../neutral/json.ts'
import { readUsage, type ReportedUsage } from '../usage/reported-usage.ts'
import { blankUsage } from '../usage/usage.ts'
import { eventIn, objectIn } from './realtime-event.ts'
import { TRANSCRIPT_USAGE } from './usage.ts'

const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'

/**
 * Reads the usage of transcripts of the client's speech. The settings of the session name the model that transcribes; that model has its
 * own price. Source: OpenAI's SDK, "ConversationItemInputAudioTranscriptionCompletedEvent".
 */
export class InputTranscripts {
  /** The model that transcribes, from the latest settings that name such a model. */
  model: string | null = null

  applySettings(settings: JsonObject): void {
    this.model = modelIn(settings) ?? this.model
  }

  /** @returns null = the message is not a transcript */
  read(type: string, message: Buffer): ReportedUsage | null {
    if (type !== TRANSCRIBED) return null
    const { usage } = eventIn(message)
    return readUsage(TRANSCRIPT_USAGE, usage) ?? { usage: blankUsage(), suspect: false }
  }
}

/** Finds the model that transcribes. The beta API has the transcription settings at the top level of the session. */
function modelIn(session: JsonObject): string | null {
  const input = objectIn(objectIn(session, 'audio'), 'input')
  const { model } = 'transcription' in input ? objectIn(input, 'transcription') : objectIn(session, 'input_audio_transcription')
  return typeof model === 'string' ? model : null
}
