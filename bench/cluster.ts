/**
 * What sharing costs: CPU per request, and added time to the first byte, of a gateway that shares limits in Valkey, its
 * ledger in PostgreSQL, or both, on this machine, each compared with the same gateway alone.
 *
 * With `slow`: how many more requests two gateways serve than one. Each is kept to a third of a core (needs the right to
 * make control groups), so that load, upstream and both services have the rest, as where each gateway has a machine.
 *
 *   node bench/cluster.ts [rounds] [seconds] [requests/s] [slow]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startPostgres, withoutPostgres } from '../test/support/postgres.ts'
import { startRedis, withoutRedis } from '../test/support/redis.ts'
import { limitCpu } from './lib/cpu-limit.ts'
import { endAfter, printHeading, printTable, quantile, spread } from './lib/figures.ts'
import { requestLoad, sharedLoop } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 12)
const seconds = Number(process.argv[3] ?? 1)
const rate = Number(process.argv[4] ?? 300)

/** Of a core, for each gateway. */
const SHARE = 1 / 3
const CONNECTIONS = 32
/** What the compiler wants to see before it has made the most of it, of each gateway. */
const WARM_UP_REQUESTS = 25_000

if (withoutPostgres || withoutRedis) {
  console.log(`skipped: ${withoutPostgres || withoutRedis}`)
  process.exit(0)
}
endAfter(240 + 3 * 5 * rounds * (seconds + 1))
const ends: (() => unknown)[] = []
const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-cluster-'))
const place = { teardown: (end: () => unknown) => void ends.push(end), testdir: () => folder } as unknown as Test
const [redis, postgres] = await Promise.all([startRedis(place), startPostgres(place)])
const upstream = await startScript('upstream', 'upstream.ts')
const valkey = `valkey: "${redis.url()}"`
const database = `postgres: "${postgres.url()}"`

if (process.argv[5] === 'slow') await printGain()
else for (const [name, parts] of [['Valkey', valkey], ['PostgreSQL', database], ['Valkey and PostgreSQL', `${valkey}, ${database}`]] as const) {
  const alone = await startGateway(upstream.port, { name: 'alone' })
  const shared = await startGateway(upstream.port, { name: `with ${name}`, extra: `cluster: { instance: bench, ${parts} }` })
  const subjects = [alone, shared] as const
  await printCpuExcess(subjects, rounds, seconds)
  await printFirstBytes(subjects)
  for (const { stop } of subjects) stop()
}
upstream.stop()
for (const end of ends.toReversed()) await end()
rmSync(folder, { recursive: true, force: true })
process.exit(0)

async function printFirstBytes(subjects: readonly Subject[]): Promise<void> {
  const figures = new Map(subjects.map(({ name }) => [name, { p50: [] as number[], p99: [] as number[] }]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, port } of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const times = await firstByteTimes(port, requestLoad(), rate, seconds)
      figures.get(name)?.p50.push(quantile(times, 0.5))
      figures.get(name)?.p99.push(quantile(times, 0.99))
    }
  }
  printTable(
    [`first byte at ${rate} requests/s, ms`, 'p50', 'p99'],
    [...figures].map(([name, { p50, p99 }]) => [name, spread(p50), spread(p99)]),
  )
}

async function printGain(): Promise<void> {
  // With its share of a core a gateway is late now and then.
  const start = (name: string) => startGateway(upstream.port, {
    name, extra: `cluster: { instance: ${name}, ${valkey}, valkey_timeout: 2s, ${database} }`,
  })
  const one = [await start('one')]
  const two = [await start('first'), await start('second')]
  const served = (gateways: readonly Subject[], ms: number) =>
    sharedLoop(gateways.map(({ port }) => port), requestLoad(), CONNECTIONS, ms)
  // In turns: who came first, and then waited for the others, is slower ever after.
  for (const missing = [WARM_UP_REQUESTS, 2 * WARM_UP_REQUESTS]; Math.max(...missing) > 0;) {
    for (const [n, gateways] of [one, two].entries()) missing[n]! -= await served(gateways, 1_000)
  }
  for (const { pid } of [...one, ...two]) limitCpu(pid as number, SHARE)
  const rates: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    for (const n of round % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
      rates[n].push(await served(n === 0 ? one : two, seconds * 1_000) / seconds)
    }
  }
  printHeading(`${rounds} rounds of ${seconds} s`, 'each gateway kept to a third of a core')
  printTable(['with Valkey and PostgreSQL', 'requests/s'], [['one gateway', spread(rates[0])], ['two gateways', spread(rates[1])]])
  console.log(`\nTwo gateways serve ${spread(rates[1].map((rate, round) => rate / rates[0][round]!), 2)} x as many`)
  for (const { stop } of [...one, ...two]) stop()
}
