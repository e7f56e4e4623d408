import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { mediaType } from '../http/media-type.ts'
import { OpaqueMeter } from '../events/opaque-meter.ts'
import type { Endpoint } from './protocol.ts'
import { MAX_EVENT } from '../events/sse.ts'
import type { StreamMeter } from '../events/stream-meter.ts'

export interface StreamMeterOptions {
  /**
   * The response's content type. One that is no stream of the endpoint's protocol
   * (sound, a single JSON body) is skipped unread; absent, it is taken for one.
   */
  readonly contentType?: string
  /** Bytes of generated text kept for counting after an early end; 64 kB. */
  readonly textLimit?: number
  /** Bytes of the longest event that is read; 16 MB, and 64 MB where it can hold pictures. */
  readonly maxEvent?: number
  /** Memory for events that are not whole yet; without it there always is some. */
  readonly reserveMemory?: ReserveMemory
}

const DEFAULT_TEXT_LIMIT = 64 * 1024
// A picture of 16 megapixels as base64, and some.
const MAX_IMAGE_EVENT = 64 * 1024 * 1024

/** Makes the meter for one streamed response of an endpoint. */
export function createStreamMeter(endpoint: Endpoint, options: StreamMeterOptions = {}): StreamMeter {
  const { textLimit = DEFAULT_TEXT_LIMIT, reserveMemory, contentType = '' } = options
  const type = mediaType(contentType)
  const isStream = type === '' || type === 'text/event-stream' || (endpoint.streamsByPath && type === 'application/json')
  if (endpoint.createMeter === null || !isStream) return new OpaqueMeter()
  const maxEvent = options.maxEvent ?? (endpoint.hasLargeEvents ? MAX_IMAGE_EVENT : MAX_EVENT)
  return endpoint.createMeter({ textLimit, maxEvent, reserveMemory })
}
