import type { Generated } from '../shared/generated-text.ts'
import type { StreamMeter } from '../shared/meter.ts'

const NONE = { content: 0, reasoning: 0, tool: 0 }
const NOTHING: Generated = { runs: [], kept: NONE, came: NONE }

/** A stream of no protocol that is known: its bytes pass unread, and HTTP's own end is its end. */
export class OpaqueMeter implements StreamMeter {
  readonly terminated = null
  readonly atBoundary = false
  readonly sawError = false
  readonly covered = true
  readonly uncountable = false
  readonly serviceTier = null
  readonly came = NONE
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

  partial(): Generated {
    return NOTHING
  }
}
