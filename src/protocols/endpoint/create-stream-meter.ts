import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { mediaType } from '../http/media-type.ts'
import { OpaqueMeter } from '../events/opaque-meter.ts'
import type { Endpoint } from './protocol.ts'
import { MAX_EVENT } from '../events/sse.ts'
import type { StreamMeter } from '../events/stream-meter.ts'

export interface StreamMeterOptions {
  /**
   * Content type of the response. A response that is not a stream of the endpoint's protocol (audio, a JSON body) is not read; absent = it
   * is such a stream.
   */
  readonly contentType?: string
  /** Maximum bytes of generated text to keep, for counting tokens if the stream breaks; default 64 kB. */
  readonly textLimit?: number
  /** Maximum bytes of an event that is read; default 16 MB, or 64 MB if events can contain images. */
  readonly maxEvent?: number
  /** Reserves memory for incomplete events; absent = no limit. */
  readonly reserveMemory?: ReserveMemory
}

const DEFAULT_TEXT_LIMIT = 64 * 1024
// Enough for an image of 16 megapixels as base64.
const MAX_IMAGE_EVENT = 64 * 1024 * 1024

export function createStreamMeter(endpoint: Endpoint, options: StreamMeterOptions = {}): StreamMeter {
  const { textLimit = DEFAULT_TEXT_LIMIT, reserveMemory, contentType = '' } = options
  const type = mediaType(contentType)
  const isStream = type === '' || type === 'text/event-stream' || (endpoint.streamsByPath && type === 'application/json')
  if (endpoint.createMeter === null || !isStream) return new OpaqueMeter()
  const maxEvent = options.maxEvent ?? (endpoint.hasLargeEvents ? MAX_IMAGE_EVENT : MAX_EVENT)
  return endpoint.createMeter({ textLimit, maxEvent, reserveMemory })
}
