/*
 * Looks for requests and responses that the gateway cannot take:
 *
 *   node test/fuzz/run.ts --minutes 60 --seed 1      the cases that follow from a seed, until the time is over
 *   node test/fuzz/run.ts test/fuzz/findings/a.json  a finding once more
 *
 * A finding is made smaller, printed with its seed, and written to a file, which test/fuzz/findings keeps once its
 * fault is corrected: then it is a test.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Scenario } from './cases.ts'
import { Fuzzer } from './fuzzer.ts'
import { search } from './search.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string', default: '1' }, seed: { type: 'string', default: String(Date.now() % 1e9) },
    /** Goes on with the next seed after a finding. */
    all: { type: 'boolean', default: false },
    /** Of a finding that runs once more: what went up, and what came back. */
    show: { type: 'boolean', default: false },
    /** Kinds of faults that are not looked for: `blocks`, `dies`. */
    ignore: { type: 'string', multiple: true, default: [] },
  },
})

/** Characters of each body. */
const SHOWN = 4_000

const fuzzer = await Fuzzer.start()
try {
  if (positionals.length > 0) await replayAll(positionals)
  else await searchLong()
} finally {
  await fuzzer.close()
}

async function replayAll(files: readonly string[]): Promise<void> {
  for (const file of files) {
    const faults = await fuzzer.replay(JSON.parse(readFileSync(file, 'utf8')) as Scenario)
    console.log(file, faults.length === 0 ? 'ok' : faults)
    if (values.show) showLast()
    if (faults.length > 0) process.exitCode = 1
  }
}

async function searchLong(): Promise<void> {
  const until = Date.now() + Number(values.minutes) * 60_000
  const first = Number(values.seed)
  let findings = 0
  for (let seed = first; Date.now() < until && (values.all || findings === 0); seed++) {
    const finding = await search(fuzzer, { seed, until, withHuge: true, ignored: values.ignore })
    console.log(`${new Date().toISOString()} seed ${seed}: ${fuzzer.cases} cases in all`)
    if (finding === null) continue
    findings++
    // What a key has overspent once is in the ledger, and would be found again with each seed that follows.
    await fuzzer.stopGateway()
    const file = join(tmpdir(), `fuzz-${seed}.json`)
    if (finding.scenario !== null) writeFileSync(file, `${JSON.stringify(finding.scenario, null, 1)}\n`)
    console.log(`FINDING with --seed ${seed}: ${finding.faults.join('\n  ')}\n  ${finding.scenario === null ? '' : file}`)
  }
  console.log(`${fuzzer.cases} cases, ${findings} findings`)
  process.exitCode = findings === 0 ? 0 : 1
}

function showLast(): void {
  const { exchanges, received, report } = fuzzer.last ?? { exchanges: [], received: [], report: null }
  for (const { path, body, response, bytes } of exchanges) console.log(`-> ${path} ${body.toString().slice(0, SHOWN)}\n<- ${response.status} ${bytes.toString().slice(0, SHOWN)}`)
  for (const { status, headers, body, isWhole } of received) console.log(`${status} ${isWhole ? 'whole' : 'cut'} ${JSON.stringify(headers)}\n${String(body).slice(0, SHOWN)}`)
  console.log(report)
}
