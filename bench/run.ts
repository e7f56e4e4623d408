/**
 * All benchmarks in turn, each in a process of its own, shortest first.
 *
 *   npm run bench [-- name ...]
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ALL = [
  'start', 'bodies', 'close', 'garbage', 'keys', 'routes', 'signed', 'crowd', 'calls', 'limits', 'ledger', 'meter', 'scan',
  'sse', 'large-reload', 'latency', 'clicks', 'concurrency', 'first-requests', 'peers', 'translation', 'streams', 'workers',
]
const names = process.argv.length > 2 ? process.argv.slice(2) : ALL
const failed = names.filter(name => {
  console.log(`\n## ${name}\n`)
  return spawnSync(
    process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' },
  ).status !== 0
})
if (failed.length > 0) {
  console.log(`\nfailed, or beyond its target: ${failed.join(', ')}`)
  process.exitCode = 1
}
