// Prints `N passed, N failed[, N skipped]` from the TAP report of a whole run,
// and exits with 1 when the report is missing, empty or tells of a failure.
import { readFileSync } from 'node:fs'

const report = readFileSync(process.argv[2], 'utf8')
const line = report.split('\n').findLast(candidate => candidate.startsWith('# { total:'))
if (line === undefined) {
  console.error('the test runner reported no totals')
  process.exit(1)
}
const count = name => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0)
const skipped = count('skip') + count('todo')
console.log(`${count('pass')} passed, ${count('fail')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
if (count('pass') === 0 || count('fail') > 0) process.exit(1)
