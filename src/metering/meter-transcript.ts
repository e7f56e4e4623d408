import { equals } from './cursor.ts'
import { ChatMeter } from './meter-chat.ts'
import type { SseEvent } from './sse.ts'

const TYPE = Buffer.from('type')
const ERROR = Buffer.from('error')
const TEXTS = [Buffer.from('delta'), Buffer.from('text')]
/** OpenAI's and Mistral's names of what is new, and of the end. */
const NEW = [Buffer.from('transcript.text.delta'), Buffer.from('transcription.text.delta')]
const LAST = [Buffer.from('transcript.text.done'), Buffer.from('transcription.done')]

/**
 * Streams of transcripts: events with a type, whose last has the usage, as OpenAI
 * and Mistral send them, or chunks like those of a chat, as vLLM does.
 */
export class TranscriptMeter extends ChatMeter {
  protected override event(event: SseEvent): void {
    const { buf, dataStart, dataEnd, nameStart, nameEnd } = event
    const { cursor } = this
    let typeStart = nameStart
    let typeEnd = nameEnd
    cursor.reset(buf, dataStart, dataEnd)
    for (let more = cursor.beginObject() && cursor.nextMember(); more; more = cursor.nextMember()) {
      if (cursor.keyIs(TYPE) && cursor.string()) {
        typeStart = cursor.valueStart
        typeEnd = cursor.valueEnd
      } else {
        cursor.skip()
      }
    }
    const isOneOf = (types: readonly Buffer[]) => types.some(type => equals(buf, typeStart, typeEnd, type))
    if (isOneOf(NEW)) this.#text(event)
    else if (isOneOf(LAST)) this.terminated = true
    else if (isOneOf([ERROR])) this.sawError = true
    super.event(event)
  }

  #text({ buf, dataStart, dataEnd }: SseEvent): void {
    const { cursor } = this
    cursor.reset(buf, dataStart, dataEnd)
    if (!cursor.beginObject()) return
    while (cursor.nextMember()) {
      if (TEXTS.some(name => cursor.keyIs(name))) this.text('content', 0, buf)
      else cursor.skip()
    }
  }
}
