/**
 * Claim: metering a streamed chunk costs no JSON parse; nanoseconds for one of
 * about 200 bytes, by protocol, against parsing it.
 *
 *     node bench/meter.ts [seconds per line]
 */
import { performance } from 'node:perf_hooks'
import { UsageChunkFilter } from '../src/protocols/chat/usage-chunk-filter.ts'
import { createStreamMeter } from '../src/protocols/endpoint/create-stream-meter.ts'
import type { EndpointName } from '../src/protocols/endpoint/protocol.ts'
import { SseReader } from '../src/protocols/events/sse.ts'
import { endpointNamed } from '../test/protocols/endpoint-named.ts'
import { median } from './lib/figures.ts'

const SECONDS = Number(process.argv[2] ?? 1)

const CHAT = sse({
  id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
  object: 'chat.completion.chunk',
  created: 1741569952,
  model: 'gpt-4o-2024-08-06',
  system_fingerprint: 'fp_44709d6fcb',
  choices: [{ index: 0, delta: { content: ' word' }, logprobs: null, finish_reason: null }],
})
const CHAT_ASKED = sse({ ...JSON.parse(CHAT.toString().slice(5)), usage: null })
const MESSAGES = Buffer.from(
  'event: content_block_delta\n' +
    sse({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' word' } }).toString(),
)
const GENERATE = sse({
  candidates: [{ content: { parts: [{ text: ' word' }], role: 'model' }, index: 0 }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 },
  modelVersion: 'gemini-2.5-pro',
  responseId: 'mAitaLmkHPPlz7IPvtfUqQ4',
})

function sse(data: unknown): Buffer {
  return Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
}

/** The median of repeated runs, in nanoseconds for one chunk. */
function measure(name: string, chunk: Buffer, step: (chunk: Buffer) => void): void {
  const batch = 20_000
  const runs: number[] = []
  const end = performance.now() + SECONDS * 1000
  while (performance.now() < end) {
    const start = performance.now()
    for (let i = 0; i < batch; i++) step(chunk)
    runs.push(((performance.now() - start) * 1e6) / batch)
  }
  console.log(
    `${name.padEnd(34)} ${String(chunk.length).padStart(4)} bytes ${median(runs).toFixed(0).padStart(6)} ns`,
  )
}

function meter(name: string, endpoint: EndpointName, chunk: Buffer): void {
  const meter = createStreamMeter(endpointNamed(endpoint))
  const reader = meter.createReader(meter)
  measure(name, chunk, chunk => reader.push(chunk))
}

meter('chat.completions', 'chat.completions', CHAT)
meter('chat.completions, usage: null', 'chat.completions', CHAT_ASKED)
meter('messages', 'messages', MESSAGES)
meter('generate.stream', 'generate.stream', GENERATE)
const reader: SseReader = new SseReader({ event: event => void filter.event(event) })
const filter = new UsageChunkFilter(reader)
measure('hiding the usage chunk', CHAT_ASKED, chunk => {
  reader.push(chunk)
  filter.take(chunk)
})
measure('for comparison: JSON.parse', CHAT, chunk => void JSON.parse(chunk.toString('utf8', 6)))
