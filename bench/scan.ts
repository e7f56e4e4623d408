/**
 * Claim: checking a request body and finding the model in it costs about as much
 * as JSON.parse for a small one and less for a large one, and never holds the
 * event loop for longer than a chunk takes. Run: node bench/scan.ts
 */
import { JsonScan } from '../src/protocols/json/json-scan.ts'
import { WatchedKeys } from '../src/protocols/json/watched-keys.ts'

const CHUNK = 64 * 1024
const keys = new WatchedKeys(['model', 'stream', 'stream_options', 'max_tokens', 'max_completion_tokens'])

function chatBody(): Buffer {
  return Buffer.from(JSON.stringify({
    model: 'gpt-4.1-mini',
    messages: [
      { role: 'system', content: 'You answer in one sentence, in plain words. '.repeat(6) },
      { role: 'user', content: 'What is "the sea" made of, and why?\n'.repeat(12) }
    ],
    temperature: 0.7,
    max_tokens: 512,
    stream: true
  }))
}

function imageBody(): Buffer {
  const pixels = Buffer.alloc(3_700_000)
  for (let i = 0; i < pixels.length; i++) pixels[i] = Math.imul(i, 2654435761) >>> 13
  const url = `data:image/png;base64,${pixels.toString('base64')}`
  const image = { type: 'image_url', image_url: { url } }
  const content = [{ type: 'text', text: 'Compare these.' }, image, image, image, image]
  return Buffer.from(JSON.stringify({ model: 'gpt-4.1', messages: [{ role: 'user', content }] }))
}

function split(body: Buffer): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; at += CHUNK) chunks.push(body.subarray(at, at + CHUNK))
  return chunks
}

interface Figures {
  /** Both in microseconds. */
  readonly median: number
  readonly longestStep: number
}

/** Runs all steps `rounds` times. A round's time is the sum of its steps. */
function measure(rounds: number, steps: () => Generator<void>): Figures {
  const totals: number[] = []
  let longestStep = 0
  for (let round = 0; round < rounds * 2; round++) {
    let total = 0
    let from = performance.now()
    for (const _ of steps()) {
      const step = performance.now() - from
      total += step
      if (round >= rounds) longestStep = Math.max(longestStep, step)
      from = performance.now()
    }
    if (round >= rounds) totals.push(total)
  }
  totals.sort((a, b) => a - b)
  return { median: totals[totals.length >> 1]! * 1000, longestStep: longestStep * 1000 }
}

function report(name: string, bytes: number, { median, longestStep }: Figures): void {
  const speed = bytes / median
  console.log(
    `${name.padEnd(24)} ${median.toFixed(2).padStart(10)} µs ${speed.toFixed(0).padStart(6)} MB/s`
    + `   longest step ${longestStep.toFixed(0).padStart(7)} µs`)
}

const bodies = [['chat', chatBody(), 200, 1000], ['images', imageBody(), 20, 1]] as const
for (const [name, body, rounds, repeat] of bodies) {
  const chunks = split(body)
  console.log(`${name}: ${body.length} bytes in ${chunks.length} chunk(s)`)
  const scan = measure(rounds, function * () {
    for (let n = 0; n < repeat; n++) {
      const scanner = new JsonScan(keys)
      for (const chunk of chunks) {
        scanner.push(chunk)
        if (chunks.length > 1) yield
      }
      if (!scanner.end().ok) throw new Error('the body is not valid')
    }
    yield
  })
  const parse = measure(rounds, function * () {
    for (let n = 0; n < repeat; n++) JSON.parse(body.toString())
    yield
  })
  const each = ({ median, longestStep }: Figures): Figures =>
    ({ median: median / repeat, longestStep: longestStep / repeat })
  report('  JsonScan', body.length, each(scan))
  report('  toString + JSON.parse', body.length, each(parse))
}
