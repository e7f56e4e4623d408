import type { TextSample } from './generated-text.ts'
import type { StreamMeter } from './meter.ts'

const NO_BYTES = { content: 0, reasoning: 0, tool: 0 }
const EMPTY_SAMPLE: TextSample = { runs: [], keptBytes: NO_BYTES, generatedBytes: NO_BYTES }

/** A stream of no protocol that is known: its bytes pass unread, and HTTP's own end is its end. */
export class OpaqueMeter implements StreamMeter {
  readonly terminated = null
  readonly atBoundary = false
  readonly sawError = false
  readonly isOutputReported = true
  readonly uncountable = false
  readonly serviceTier = null
  readonly generatedBytes = NO_BYTES
  sawContent = false

  push(chunk: Buffer): void {
    if (chunk.length > 0) this.sawContent = true
  }

  end(): void {
    // Nothing is held back.
  }

  reading(): null {
    return null
  }

  partial(): TextSample {
    return EMPTY_SAMPLE
  }
}
