import { ChunkMeter } from '../chat/meter.ts'
import type { StreamEvent } from '../events/stream-event.ts'

const TEXTS = [Buffer.from('delta'), Buffer.from('text')]
/** The types of events that OpenAI and Mistral send. */
const DELTA_TYPES = [Buffer.from('transcript.text.delta'), Buffer.from('transcription.text.delta')]
const END_TYPES = [Buffer.from('transcript.text.done'), Buffer.from('transcription.done')]
const ERROR_TYPES = [Buffer.from('error')]

/** Meters events with a type, of which the last has the usage (OpenAI, Mistral), and chunks like those of chat (vLLM). */
export class TranscriptMeter extends ChunkMeter {
  /** Every event is parsed, because events have different types. Chunks of chat do not. */
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
