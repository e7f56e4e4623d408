/**
 * What translation costs: a messages client at a chat upstream, compared with a chat client at the same upstream. CPU per
 * request and per streamed chunk, and the time to the first event of a stream.
 *
 *   node bench/translation.ts [rounds] [seconds]
 */
import { endAfter, median, printTable, spread } from './lib/figures.ts'
import { messagesLoad, messagesStreamLoad, requestLoad, streamLoad, timesAlone } from './lib/load.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 20)
const seconds = Number(process.argv[3] ?? 1)
const CHUNKS = 200

endAfter(120 + 6 * rounds * (seconds + 2))
const upstream = await startScript('upstream', 'upstream.ts')
const start = (name: string, prefix = '') => startGateway(upstream.port, {
  name,
  upstreams: `  chat: { url: "http://127.0.0.1:${upstream.port}${prefix}", speaks: [chat] }`,
  routes: '  - { to: { upstream: chat, model: m } }',
})
const untranslated = await start('untranslated')
const translated = await start('translated')
await printCpuExcess([{ ...untranslated, load: requestLoad() }, { ...translated, load: messagesLoad() }], rounds, seconds)
for (const { stop } of [untranslated, translated]) stop()

// Headers of a client do not reach an upstream of another protocol.
const chat = await start('untranslated', `/x-chunks:${CHUNKS}`)
const messages = await start('translated', `/x-chunks:${CHUNKS}`)
await printCpuExcess([{ ...chat, load: streamLoad(CHUNKS) }, { ...messages, load: messagesStreamLoad(CHUNKS) }], rounds, seconds)
for (const { stop } of [chat, messages]) stop()

const first = [
  { ...await start('untranslated', '/x-chunks:1'), load: streamLoad(1) },
  { ...await start('translated', '/x-chunks:1'), load: messagesStreamLoad(1) },
]
const medians = first.map((): number[] => [])
for (let round = 0; round <= rounds; round++) {
  for (const [n, { port, load }] of first.entries()) {
    const times = await timesAlone(port, load, seconds * 500, 'data: ')
    // The first round does not count.
    if (round > 0) medians[n]?.push(median(times))
  }
}
printTable(['', 'ms to the first event, median'], first.map(({ name }, n) => [name, spread(medians[n] ?? [], 2)]))
const [before = [], after = []] = medians
console.log(`\nA pair differs by ${spread(after.map((value, round) => value - (before[round] as number)), 2)} ms`)
for (const { stop } of [...first, upstream]) stop()
