import { readFileSync, readdirSync } from 'node:fs'
import t from 'tap'
import type { Scenario } from './cases.ts'
import { Fuzzer } from './fuzzer.ts'
import { search } from './search.ts'

/** Milliseconds that the search may take. Longer ones are for `run.ts`. */
const SEARCH = 40_000
const FINDINGS = new URL('./findings/', import.meta.url)

const fuzzer = await Fuzzer.start()
t.teardown(() => fuzzer.close())

for (const name of readdirSync(FINDINGS)) {
  t.test(`an earlier finding stays fixed: ${name.replace('.json', '').replaceAll('-', ' ')}`, async t => {
    const scenario = JSON.parse(readFileSync(new URL(name, FINDINGS), 'utf8')) as Scenario
    t.strictSame(await fuzzer.replay(scenario), [])
  })
}

t.test('a fixed seed finds no fault', async t => {
  const finding = await search(fuzzer, { seed: 1, until: Date.now() + SEARCH, withHuge: false })
  t.strictSame(finding, null, 'node test/fuzz/run.ts --seed 1 finds it again')
})
