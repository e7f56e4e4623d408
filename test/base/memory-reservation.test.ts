import t from 'tap'
import { MemoryReservation } from '../../src/base/memory-reservation.ts'
import type { ReserveMemory } from '../../src/base/memory-reservation.ts'
import { JsonArrayReader } from '../../src/protocols/events/json-array.ts'
import { SseReader } from '../../src/protocols/events/sse.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'

const KB = 1024
const PIECE = Buffer.alloc(32 * KB, 'x')

/** A memory of at most `most` bytes. */
function memory(most: number): { taken: number; take: ReserveMemory } {
  const state = {
    taken: 0,
    take: (bytes: number) => {
      if (state.taken + bytes > most) return false
      state.taken += bytes
      return true
    },
  }
  return state
}

t.test('reservations up to 64 kB are not counted; larger reservations are counted completely', async t => {
  const state = memory(200 * KB)
  const room = new MemoryReservation(state.take)
  t.ok(room.resize(64 * KB))
  t.equal(state.taken, 0)
  t.ok(room.resize(100 * KB))
  t.equal(state.taken, 100 * KB)
  t.notOk(room.resize(201 * KB))
  t.equal(state.taken, 100 * KB)
  t.ok(room.resize(10))
  t.equal(state.taken, 0)
  t.ok(new MemoryReservation().resize(1e12), 'without a `ReserveMemory` no memory is counted')
})

t.test('an event beyond the memory limit is reported as oversize without data, and later events are read', async t => {
  const state = memory(200 * KB)
  const seen: [boolean, string][] = []
  const reader = new SseReader({ event: ({ buf, dataStart, dataEnd, oversize }) => {
    seen.push([oversize, buf.toString('latin1', dataStart, Math.min(dataEnd, dataStart + 3))])
  } }, { reserveMemory: state.take })
  const push = (data: string, pieces: number): void => {
    reader.push(Buffer.from(`data: ${data}`))
    for (let n = 0; n < pieces; n++) reader.push(PIECE)
  }
  push('abc', 4)
  t.equal(state.taken, 9 + 4 * PIECE.length)
  reader.push(Buffer.from('\n\n'))
  t.equal(state.taken, 0)
  push('def', 8)
  t.equal(state.taken, 0, 'the memory of an event beyond the limit is released')
  reader.push(Buffer.from('\n\ndata: ghi\n\n'))
  t.same(seen, [[false, 'abc'], [true, ''], [false, 'ghi']])
})

t.test('an array element beyond the memory limit is reported as oversize', async t => {
  const state = memory(200 * KB)
  const seen: boolean[] = []
  const reader = new JsonArrayReader({ event: ({ oversize }) => void seen.push(oversize) }, { reserveMemory: state.take })
  const push = (pieces: number): void => {
    reader.push(Buffer.from('{"a":"'))
    for (let n = 0; n < pieces; n++) reader.push(PIECE)
  }
  reader.push(Buffer.from('['))
  push(4)
  t.equal(state.taken, 6 + 4 * PIECE.length)
  reader.push(Buffer.from('"},'))
  push(8)
  t.equal(state.taken, 0)
  reader.push(Buffer.from('"},{}]'))
  t.same(seen, [false, true, false])
})

t.test('`terminated` is null if the last event is oversize and can be the end of the stream', async t => {
  const none = () => false
  const large = 'x'.repeat(100 * KB)
  const meterOf = (endpoint: 'responses' | 'chat.completions' | 'generate.stream', ...texts: string[]) => {
    const meter = readableMeter(endpointNamed(endpoint), { reserveMemory: none })
    for (const text of texts) meter.push(Buffer.from(text))
    return meter
  }
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
  const completed = event({ type: 'response.completed', response: { output: large } })
  const responses = meterOf('responses', completed.slice(0, 90_000), completed.slice(90_000))
  t.equal(responses.terminated, null)
  responses.push(Buffer.from(event({ type: 'response.output_text.delta', delta: 'more' })))
  t.equal(responses.terminated, false, 'an event after the oversize event shows that the stream has not ended')
  const half = meterOf('responses', completed.slice(0, 50_000), completed.slice(50_000, 90_000))
  half.end()
  t.equal(half.terminated, false, 'an incomplete oversize event is not the end of the stream')
  const chat = event({ choices: [{ delta: { content: large } }] })
  t.equal(meterOf('chat.completions', chat.slice(0, 90_000), chat.slice(90_000)).terminated, false)
  const element = JSON.stringify({ candidates: [{ finishReason: 'STOP', content: large }] })
  const array = meterOf('generate.stream', `[${element.slice(0, 90_000)}`, element.slice(90_000))
  t.equal(array.terminated, false)
  array.push(Buffer.from(']'))
  t.equal(array.terminated, null)
})
