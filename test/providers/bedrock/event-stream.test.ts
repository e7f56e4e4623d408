import t from 'tap'
import { EventStreamDecoder } from '../../../src/providers/bedrock/event-stream.ts'
import { chunkFrame, eventFrame, exceptionFrame } from '../../support/aws.ts'

const FRAMES = [chunkFrame({ type: 'a' }), eventFrame({ ':message-type': 'event', ':event-type': 'empty' }, ''), exceptionFrame('throttlingException', 'ü')]
const NAMES = ['event chunk', 'event empty', 'exception throttlingException']

function open() {
  const seen: string[] = []
  const decoder = new EventStreamDecoder(({ kind, name, payload }) => {
    seen.push(`${kind} ${name}`)
    return payload.toString()
  })
  return { decoder, seen }
}

t.test('frames are decoded correctly for any chunk size', async t => {
  const bytes = Buffer.concat(FRAMES)
  for (let size = 1; size <= bytes.length; size++) {
    const { decoder, seen } = open()
    const out: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) out.push(decoder.push(bytes.subarray(at, at + size)))
    out.push(decoder.end())
    t.strictSame([seen, decoder.fault], [NAMES, null])
    t.match(Buffer.concat(out).toString(), /\{"message":"ü"\}$/)
  }
})

t.test('a damaged frame is detected, and earlier frames are passed on', async t => {
  const [first, second] = FRAMES as [Buffer, Buffer]
  for (let at = 0; at < second.length; at++) {
    const { decoder, seen } = open()
    const damaged = Buffer.from(second)
    damaged[at] = (damaged[at] as number) ^ 4
    decoder.push(Buffer.concat([first, damaged, first]))
    decoder.end()
    t.match(decoder.fault?.code, /^upstream_(invalid|cut)$/, `byte ${at}`)
    t.strictSame(seen, NAMES.slice(0, 1))
    t.equal(decoder.push(first).length, 0, 'nothing is read behind it')
  }
})

t.test('a stream that ends inside a frame is cut', async t => {
  for (let length = 1; length < (FRAMES[0] as Buffer).length; length++) {
    const { decoder } = open()
    decoder.push((FRAMES[0] as Buffer).subarray(0, length))
    t.equal(decoder.fault, null)
    decoder.end()
    t.equal(decoder.fault?.code, 'upstream_cut')
  }
})

t.test('a frame that announces too many bytes is refused at once', async t => {
  const { decoder } = open()
  const head = Buffer.alloc(16)
  head.writeUInt32BE(0x7fffffff)
  decoder.push(head)
  t.equal(decoder.fault?.code, 'upstream_invalid')
})
