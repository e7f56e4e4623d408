import { createStreamMeter } from '../../src/protocols/endpoint/create-stream-meter.ts'
import type { StreamMeterOptions } from '../../src/protocols/endpoint/create-stream-meter.ts'
import type { Endpoint } from '../../src/protocols/endpoint/protocol.ts'
import type { EventReader } from '../../src/protocols/events/stream-event.ts'
import type { StreamMeter } from '../../src/protocols/events/stream-meter.ts'

/** A meter, and the reader that passes the events of a stream to the meter. */
export type ReadableMeter = StreamMeter & {
  readonly reader: EventReader
  push(chunk: Buffer): void
  end(): void
}

export function readableMeter(endpoint: Endpoint, options?: StreamMeterOptions): ReadableMeter {
  const meter = createStreamMeter(endpoint, options)
  const reader = meter.createReader(meter)
  return Object.assign(meter, {
    reader, push: (chunk: Buffer) => reader.push(chunk), end: () => reader.end(),
  })
}
