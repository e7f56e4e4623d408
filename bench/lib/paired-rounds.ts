import { relativeExcess, percent, printHeading, printTable, spread } from './figures.ts'
import { closedLoop, requestLoad } from './load.ts'
import type { Load } from './load.ts'
import { cpuPerUnit } from './subjects.ts'
import type { Subject } from './subjects.ts'

const CONNECTIONS = 32
const WARM_UP_MS = 4_000

/** What is measured: a subject under its load. */
export type LoadedSubject = Subject & { readonly load?: Load }

/**
 * CPU per request, or per chunk, of two subjects that take turns, in short rounds and in changing
 * order; each round is a pair, and what counts is how the two of a pair differ.
 * Prints the figures of both, and how much more the second takes.
 *
 * @param common the load of subjects that have none of their own
 */
export async function printCpuExcess(
  subjects: readonly [LoadedSubject, LoadedSubject], rounds: number, seconds: number, common: Load = requestLoad(),
): Promise<void> {
  const figures = new Map(subjects.map(({ name }) => [name, [] as number[]]))
  for (const { port, load = common } of subjects) await closedLoop(port, load, CONNECTIONS, WARM_UP_MS)
  for (let round = 0; round < rounds; round++) {
    for (const { name, port, pid, load = common } of round % 2 === 0 ? subjects : subjects.toReversed()) {
      figures.get(name)?.push(await cpuPerUnit(pid, () => closedLoop(port, load, CONNECTIONS, seconds * 1000)))
    }
  }
  printHeading(`${rounds} rounds of ${seconds} s`)
  const unit = (subjects[0].load ?? common).units === 1 ? 'request' : 'chunk'
  printTable(['', `us CPU per ${unit}`], [...figures].map(([name, values]) => [name, spread(values)]))
  const [one = [], other = []] = figures.values()
  const differences = one.map((value, round) => (other[round] as number) - value)
  console.log(`\nA pair differs by ${spread(differences)} us CPU per ${unit}`)
  console.log(`${subjects[1].name} takes ${percent(relativeExcess(one, other))} more, with 95 % certainty`)
}
