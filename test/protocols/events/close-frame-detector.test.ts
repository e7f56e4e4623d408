import t from 'tap'
import { CloseFrameDetector } from '../../../src/protocols/events/close-frame-detector.ts'

const TEXT = 0x81
const PING = 0x89
const CLOSE = 0x88

/** A WebSocket frame of a client (RFC 6455 section 5.2), with `bytes` bytes, by default as many as the head says. */
function frame(first: number, length: number, bytes = length): Buffer {
  const head = length < 126 ? Buffer.from([first, 0x80 | length]) : Buffer.alloc(length < 65_536 ? 4 : 10)
  if (length >= 126) {
    head[0] = first
    head[1] = 0x80 | (length < 65_536 ? 126 : 127)
    if (length < 65_536) head.writeUInt16BE(length, 2)
    else head.writeBigUInt64BE(BigInt(length), 2)
  }
  // The bytes of the content look like a close frame.
  return Buffer.concat([head, Buffer.from([0x88, 0x80, 0x88, 0x80]), Buffer.alloc(bytes, 0x88)])
}

const BEFORE = [0, 1, 125, 126, 127, 65_535, 65_536].flatMap(length => [
  frame(TEXT, length), frame(0x01, length), frame(0xc2, length), ...length < 126 ? [frame(PING, length)] : [],
])

for (const size of [1, 2, 3, 7, 65_536, 10_000_000]) {
  for (const length of [0, 2, 125]) {
    t.test(`a close frame of ${length} bytes after other frames is found, in chunks of ${size} bytes`, t => {
      const heads = new CloseFrameDetector()
      const bytes = Buffer.concat([...BEFORE, frame(CLOSE, length)])
      const copy = Buffer.from(bytes)
      for (let at = 0; at < bytes.length - 1; at += size) {
        heads.push(bytes.subarray(at, Math.min(at + size, bytes.length - 1)))
      }
      t.notOk(heads.closed, 'the last byte is missing')
      heads.push(bytes.subarray(-1))
      t.ok(heads.closed)
      heads.push(frame(TEXT, 5))
      t.ok(heads.closed, 'later bytes have no effect')
      t.ok(bytes.equals(copy), 'the bytes are unchanged')
      t.end()
    })
  }
}

t.test('an unmasked close frame is found, but not a close frame inside an endless frame', t => {
  const bare = new CloseFrameDetector()
  bare.push(Buffer.from([TEXT, 1, 0x88, CLOSE, 2, 3, 0xe8]))
  t.ok(bare.closed)
  const endless = new CloseFrameDetector()
  endless.push(frame(TEXT, 2 ** 50, 100))
  for (let n = 0; n < 100; n++) endless.push(frame(CLOSE, 0))
  t.notOk(endless.closed)
  t.end()
})

t.test('an invalid close frame is ignored: fragmented, of 126 bytes, with reserved bits', t => {
  for (const [first, length] of [[0x08, 0], [CLOSE, 126], [0xc8, 2], [0x98, 2]] as const) {
    const heads = new CloseFrameDetector()
    heads.push(frame(first, length))
    t.notOk(heads.closed, `${first} ${length}`)
    heads.push(frame(CLOSE, 0))
    t.ok(heads.closed)
  }
  t.end()
})
