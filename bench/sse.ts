/**
 * Claim: reading a streamed event costs well under a microsecond, with no copy.
 * Run: node bench/sse.ts
 */
import { JsonArrayReader } from '../src/protocols/events/json-array.ts'
import { SseReader } from '../src/protocols/events/sse.ts'
import type { EventSink } from '../src/protocols/events/stream-event.ts'

const EVENTS = 64
const ROUNDS = 20_000

const content = 'x'.repeat(64)
const choices = [{ index: 0, delta: { content } }]
const json = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', choices })
const event = `data: ${json}${' '.repeat(Math.max(0, 200 - json.length - 8))}\n\n`

interface Reader {
  push(chunk: Buffer): void
}

function split(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text)
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
  return chunks
}

/** Nanoseconds for each event, the best of five runs. */
function measure(name: string, chunks: Buffer[], start: () => Reader, next: (last: Reader) => Reader): void {
  let best = Infinity
  for (let run = 0; run < 5; run++) {
    let reader = start()
    const from = performance.now()
    for (let round = 0; round < ROUNDS; round++) {
      for (const chunk of chunks) reader.push(chunk)
      reader = next(reader)
    }
    best = Math.min(best, (performance.now() - from) * 1e6 / (ROUNDS * EVENTS))
  }
  console.log(`${name.padEnd(44)} ${best.toFixed(0).padStart(6)} ns / event`)
}

let bytes = 0
const sink: EventSink = {
  event: ({ dataStart, dataEnd }) => {
    bytes += dataEnd - dataStart
  },
}
const sse = (): Reader => new SseReader(sink)
const keep = (reader: Reader): Reader => reader
console.log(`${event.length}-byte events`)
measure('SSE, one event a chunk', split(event.repeat(EVENTS), event.length), sse, keep)
measure('SSE, 64 events a chunk', split(event.repeat(EVENTS), event.length * EVENTS), sse, keep)
measure('SSE, chunks of 150 bytes', split(event.repeat(EVENTS), 150), sse, keep)
const crlf = event.replaceAll('\n', '\r\n')
measure('SSE, CRLF, one event a chunk', split(crlf.repeat(EVENTS), crlf.length), sse, keep)

const array = (): Reader => new JsonArrayReader(sink)
const elements = `[${`${json}\n,\r\n`.repeat(EVENTS - 1)}${json}]`
measure('JSON array, one element a chunk', split(elements, json.length + 4), array, array)
if (bytes === 0) throw new Error('nothing was read')
