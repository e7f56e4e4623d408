import type { TextSample } from './generated-text.ts'
import { ChunkReader, type EventReader, type EventSink, type StreamEvent } from './stream-event.ts'
import type { StreamMeter } from './stream-meter.ts'

const NO_BYTES = { content: 0, reasoning: 0, tool: 0 }
const EMPTY_SAMPLE: TextSample = { runs: [], keptBytes: NO_BYTES, generatedBytes: NO_BYTES }

/** Meters a stream of an unknown protocol. The meter does not read the bytes: the stream ends when the HTTP body ends. */
export class OpaqueMeter implements StreamMeter {
  readonly terminated = null
  readonly missingEnd = null
  readonly sawError = false
  readonly errorEvent = null
  readonly isOutputReported = true
  readonly uncountable = false
  readonly serviceTier = null
  readonly generatedBytes = NO_BYTES
  sawContent = false

  createReader(sink: EventSink): EventReader {
    return new ChunkReader(sink)
  }

  event({ start, end }: StreamEvent): void {
    if (end > start) this.sawContent = true
  }

  reading(): null {
    return null
  }

  partial(): TextSample {
    return EMPTY_SAMPLE
  }
}
