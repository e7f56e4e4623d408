import type { ReserveMemory } from '../base/memory-reservation.ts'
import { ChatMeter } from './chat/meter.ts'
import { InteractionMeter } from './generate/meter-interaction.ts'
import { GenerateMeter } from './generate/meter.ts'
import { OpaqueMeter } from './media/meter-opaque.ts'
import { TranscriptMeter } from './media/meter-transcript.ts'
import { MessagesMeter } from './messages/meter.ts'
import { IMAGE_EVENTS, REALTIME_EVENTS, RESPONSE_EVENTS, SPEECH_EVENTS, TypedMeter } from './responses/meter.ts'
import { mediaType } from './shared/media-type.ts'
import type { MeterLimits, StreamMeter } from './shared/meter.ts'
import type { EndpointName } from './shared/names.ts'
import { MAX_EVENT } from './shared/sse.ts'

export type { StreamMeter } from './shared/meter.ts'

export interface StreamMeterOptions {
  /**
   * The answer's content type. One that is no stream of the endpoint's protocol
   * (sound, a single JSON body) is passed over unread; absent, it is taken for one.
   */
  readonly contentType?: string
  /** Bytes of generated text kept for counting after an early end; 256 kB. */
  readonly textLimit?: number
  /** Bytes of the longest event that is read; 16 MB, and 64 MB where it can hold pictures. */
  readonly maxEvent?: number
  /** Memory for events that are not whole yet; without it there always is some. */
  readonly reserveMemory?: ReserveMemory
}

const DEFAULT_TEXT_LIMIT = 256 * 1024
// A picture of 16 megapixels as base64, and some.
const MAX_IMAGE_EVENT = 64 * 1024 * 1024

/** Makes the meter for one streamed answer of an endpoint. */
export function createStreamMeter(endpoint: EndpointName, options: StreamMeterOptions = {}): StreamMeter {
  const { textLimit: keep = DEFAULT_TEXT_LIMIT, maxEvent, reserveMemory: room, contentType = '' } = options
  const limits: MeterLimits = { textLimit: keep, maxEvent: maxEvent ?? MAX_EVENT, reserveMemory: room }
  const large: MeterLimits = { textLimit: keep, maxEvent: maxEvent ?? MAX_IMAGE_EVENT, reserveMemory: room }
  const type = mediaType(contentType)
  const isEvents = type === '' || type === 'text/event-stream'
  switch (isEvents || endpoint === 'generate.stream' ? endpoint : 'other') {
    case 'chat.completions':
    case 'completions':
      return new ChatMeter(endpoint, limits)
    case 'messages':
      return new MessagesMeter(limits)
    case 'responses':
      return new TypedMeter(endpoint, RESPONSE_EVENTS, large)
    case 'realtime':
      return new TypedMeter(endpoint, REALTIME_EVENTS, limits)
    case 'images.generations':
    case 'images.edits':
      return new TypedMeter(endpoint, IMAGE_EVENTS, large)
    case 'audio.transcriptions':
    case 'audio.translations':
      return new TranscriptMeter(endpoint, limits)
    case 'audio.speech':
      return new TypedMeter(endpoint, SPEECH_EVENTS, limits)
    case 'interactions':
      return new InteractionMeter(large)
    case 'generate.stream':
      return isEvents || type === 'application/json' ? new GenerateMeter(large) : new OpaqueMeter()
    default:
      return new OpaqueMeter()
  }
}
