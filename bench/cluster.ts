/**
 * What sharing costs: CPU per request, and added time to the first byte, of a gateway that shares limits in Valkey, its
 * ledger in PostgreSQL, or both, on this machine, each compared with the same gateway alone.
 *
 *   node bench/cluster.ts [rounds] [seconds] [requests/s]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startPostgres, withoutPostgres } from '../test/support/postgres.ts'
import { startRedis, withoutRedis } from '../test/support/redis.ts'
import { endAfter, printTable, quantile, spread } from './lib/figures.ts'
import { requestLoad } from './lib/load.ts'
import { firstByteTimes } from './lib/open-loop.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { Subject } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 12)
const seconds = Number(process.argv[3] ?? 1)
const rate = Number(process.argv[4] ?? 300)

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

for (const [name, parts] of [['Valkey', valkey], ['PostgreSQL', database], ['Valkey and PostgreSQL', `${valkey}, ${database}`]] as const) {
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
