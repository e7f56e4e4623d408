import { ChunkMeter } from '../chat/meter.ts'
import type { StreamEvent } from '../events/stream-event.ts'

const TEXTS = [Buffer.from('delta'), Buffer.from('text')]
/** OpenAI's and Mistral's types for new text, and for the end. */
const DELTA_TYPES = [Buffer.from('transcript.text.delta'), Buffer.from('transcription.text.delta')]
const END_TYPES = [Buffer.from('transcript.text.done'), Buffer.from('transcription.done')]
const ERROR_TYPES = [Buffer.from('error')]

/**
 * Streams of transcripts: typed events of which the last has the usage, as from OpenAI and Mistral, or chunks like a
 * chat's, as from vLLM.
 */
export class TranscriptMeter extends ChunkMeter {
  /** Each event is parsed: the type of an event has a meaning here, unlike that of a chat chunk. */
  protected override readonly remembersEvents = false

  protected override read(event: StreamEvent): void {
    const { buf } = event
    this.walk(event)
    if (this.isOneOf(buf, DELTA_TYPES)) this.#text(event)
    else if (this.isOneOf(buf, END_TYPES)) this.terminated = true
    else if (this.isOneOf(buf, ERROR_TYPES)) this.sawError = true
    super.read(event)
  }

  #text({ buf, dataStart, dataEnd }: StreamEvent): void {
    const { cursor } = this
    cursor.reset(buf, dataStart, dataEnd)
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (TEXTS.some(name => cursor.keyIs(name))) this.text('content', 0, buf)
      else cursor.skip()
    }
  }
}
