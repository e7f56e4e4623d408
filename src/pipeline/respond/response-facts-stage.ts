import { ResponseFactsReader, mayHaveFinishReason } from '../../protocols/events/response-facts.ts'
import type { StreamEvent } from '../../protocols/events/stream-event.ts'
import type { Stage } from './response-stream.ts'

/** Reads the facts of a stream for its trace. Most events contain only text and are not parsed. */
export class ResponseFactsStage implements Stage {
  readonly facts = new ResponseFactsReader()

  event(event: StreamEvent): void {
    const { facts } = this
    const isBeginning = facts.id === null || facts.model === null
    if (isBeginning || mayHaveFinishReason(event.buf.subarray(event.dataStart, event.dataEnd))) facts.read(event.value)
  }
}
