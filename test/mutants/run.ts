/*
 * Which faults the unit tests catch: seeds small faults in the sources, one at a time, and runs the mirrored test of each.
 *
 *   node test/mutants/run.ts                                200 faults of proxy, pipeline, limits and protocols
 *   node test/mutants/run.ts --count 50 --seed 2 src/limits
 *
 * The same seed seeds the same faults as long as the sources are the same. A test that does not end has caught its
 * fault. What no test caught is printed; some of it changes nothing that anyone can see.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { faultsOf } from './faults.ts'
import type { Fault } from './faults.ts'

interface Mutant extends Fault {
  readonly file: string
  readonly test: string
}

const ROOT = join(import.meta.dirname, '..', '..')
/** Number of tests that run at the same time. */
const JOBS = 2
/** ms; longer than any unit test takes without a fault, also on a slow machine. */
const LEAST_TIMEOUT = 20_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { count: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
})
const folders = positionals.length > 0 ? positionals : ['src/proxy', 'src/pipeline', 'src/limits', 'src/protocols']

const all = folders.flatMap(folder => mutantsBelow(folder))
const chosen = sample(all, Number(values.count), Number(values.seed))
const lasting = await baselines([...new Set(chosen.map(({ test }) => test))])
const survivors: Mutant[] = []
const counts = new Map(folders.map(folder => [folder, { seeded: 0, caught: 0 }]))
await inParallel(chosen, async mutant => {
  const usual = lasting.get(mutant.test)
  if (usual === undefined) return
  const isCaught = await run(mutant.test, Math.max(LEAST_TIMEOUT, Math.ceil(usual) * 5), mutant) !== 0
  const count = counts.get(folders.find(folder => mutant.file.startsWith(folder)) as string)
  if (count !== undefined) {
    count.seeded++
    count.caught += Number(isCaught)
  }
  if (!isCaught) survivors.push(mutant)
})
for (const mutant of survivors.toSorted((one, other) => one.file.localeCompare(other.file) || one.start - other.start)) {
  const source = readFileSync(join(ROOT, mutant.file), 'utf8')
  const line = source.slice(0, mutant.start).split('\n').length
  console.log(`${mutant.file}:${line}: ${source.slice(mutant.start, mutant.end)} -> ${mutant.text}`)
}
console.table(Object.fromEntries(counts))

/** The faults of all sources with a mirrored test. */
function mutantsBelow(folder: string): Mutant[] {
  return globSync(`${folder}/**/*.ts`, { cwd: ROOT }).toSorted().flatMap(file => {
    const test = file.replace(/^src/, 'test').replace(/\.ts$/, '.test.ts')
    if (!existsSync(join(ROOT, test))) return []
    return faultsOf(readFileSync(join(ROOT, file), 'utf8')).map(fault => ({ ...fault, file, test }))
  })
}

/** A sample of the faults, by pseudo-random numbers (linear congruential generator). */
function sample(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const rest = [...mutants]
  let state = seed
  const taken: Mutant[] = []
  while (taken.length < count && rest.length > 0) {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    taken.push(...rest.splice(Math.floor(state / 2 ** 32 * rest.length), 1))
  }
  return taken
}

/** @returns ms that each test takes without a fault; without tests that fail */
async function baselines(tests: readonly string[]): Promise<Map<string, number>> {
  const times = new Map<string, number>()
  await inParallel(tests, async test => {
    const start = performance.now()
    if (await run(test, 120_000, null) === 0) times.set(test, performance.now() - start)
    else console.log(`${test} fails without a fault: it is left out`)
  })
  return times
}

/** @returns the code that the test exits with; null = it was ended at the timeout */
async function run(test: string, timeout: number, mutant: Mutant | null): Promise<number | null> {
  const preloads = ['--require=./test/support/compile-cache.ts', ...mutant === null ? [] : ['--import=./test/mutants/seed.ts']]
  const env = { ...process.env, TAP: '1', ...mutant !== null && { MUTANT: JSON.stringify({ ...mutant, url: String(pathToFileURL(join(ROOT, mutant.file))) }) } }
  const child = spawn(process.execPath, ['--no-warnings', ...preloads, test], {
    cwd: ROOT, env, stdio: 'ignore', timeout, killSignal: 'SIGKILL',
  })
  const [code] = await once(child, 'exit') as [number | null]
  return code
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values()
  await Promise.all(Array.from({ length: JOBS }, async () => {
    for (const item of waiting) await work(item)
  }))
}
