/**
 * What becomes of the garbage that requests make: it should die young. What is
 * promoted to the old generation instead costs its copying, and a major
 * collection later on. The figures are V8's own, and hold on a busy machine. It is
 * beside streams that stay, which V8 might take for what all requests are like.
 *
 *   node bench/garbage.ts [rounds] [seconds] [streams]
 */
import { readFileSync } from 'node:fs'
import { endAfter, printHeading, printTable } from './lib/figures.ts'
import { openIdleStreams } from './lib/idle-streams.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 4)
const seconds = Number(process.argv[3] ?? 3)
const streams = Number(process.argv[4] ?? 500)
const CONNECTIONS = 32
/** kB per request that are promoted at most, of some 60 that are allocated. */
const TARGET = 0.5

/** A line of `--trace-gc-nvp`, as far as it is looked at. */
interface Collection {
  readonly gc: string
  readonly pause: number
  readonly allocated: number
  readonly promoted: number
}

endAfter(60 + (rounds + 1) * seconds * 3)
const upstream = await startScript('direct', 'upstream.ts')
const gateway = await startGateway(upstream.port, { nodeArgs: ['--trace-gc-nvp'] })
const open = await openIdleStreams(gateway.port, streams)
let read = 0
let isolate: string | null = null

/** The main thread's collections since the last call; its isolate is the first to collect. */
function collections(): Collection[] {
  const log = readFileSync(gateway.log, 'latin1')
  const lines = log.slice(read, log.lastIndexOf('\n')).split('\n')
  read = log.lastIndexOf('\n')
  return lines.flatMap(line => {
    const [, of, json] = /^\[\d+:(0x\w+):\d+\].*? GC: (\{.*\})/.exec(line) ?? []
    if (of === undefined || json === undefined) return []
    isolate ??= of
    return of === isolate ? [JSON.parse(json) as Collection] : []
  })
}

const rows: string[][] = []
let worst = 0
for (let round = 0; round <= rounds; round++) {
  const { units } = await closedLoop(gateway.port, requestLoad(), CONNECTIONS, seconds * 1000)
  const all = collections()
  const minor = all.filter(({ gc }) => gc === 's')
  const each = (field: 'pause' | 'allocated' | 'promoted') =>
    minor.reduce((sum, row) => sum + row[field], 0) / units
  const promoted = each('promoted') / 1024
  // Round 0 has the start in it.
  if (round > 0) worst = Math.max(worst, promoted)
  const figures = [
    (each('allocated') / 1024).toFixed(1), promoted.toFixed(2), (each('pause') * 1000).toFixed(1),
  ]
  rows.push([String(round), String(units), ...figures, String(all.length - minor.length)])
}
printHeading(`${CONNECTIONS} connections beside ${streams} streams`, `${seconds} s a round`)
printTable(['round', 'requests', 'allocated, kB', 'promoted, kB', 'pause, us', 'major collections'], rows)
if (!(worst <= TARGET)) {
  console.log(`\na request has ${worst.toFixed(2)} kB promoted, above ${TARGET}`)
  process.exitCode = 1
}
for (const socket of open) socket.destroy()
gateway.stop()
upstream.stop()
