import t from 'tap'
import { loadConfigText } from '../../src/config/load/load.ts'
import type { Config } from '../../src/config/types.ts'
import { pendingKeys } from '../../src/gateway/pending-keys.ts'

const LEAST = `upstreams: { demo: { simulator: true } }
routes: [{ to: demo }]
auth: open
`
const STARTED = `server: { listen: 127.0.0.1:1, workers: 2, drain: 1s }
console: { listen: 127.0.0.1:2 }
docs: { listen: 127.0.0.1:3 }
ledger: { file: a.db, keep: 10d }
`

function config(text: string): Config {
  return loadConfigText('gateway.yaml', text + LEAST, {}).config
}

t.test('configuration keys that need a restart are reported if they are changed, added or removed', async t => {
  const started = config(STARTED)
  t.same(pendingKeys(started, config(STARTED)), [])
  for (const [from, to, keys] of [
    ['127.0.0.1:1', '127.0.0.1:4', ['server.listen']],
    ['workers: 2', 'workers: 3', ['server.workers']],
    ['workers: 2', 'reuse_port: true', ['server.reuse_port', 'server.workers']],
    ['127.0.0.1:2', '127.0.0.1:4', ['console.listen']],
    ['console: { listen: 127.0.0.1:2 }\n', '', ['console.listen']],
    ['127.0.0.1:3', '127.0.0.1:4', ['docs.listen']],
    ['docs: { listen: 127.0.0.1:3 }\n', '', ['docs.listen']],
    ['a.db', 'b.db', ['ledger.file']],
    [', keep: 10d', '', ['ledger.keep']],
    ['10d', '11d', ['ledger.keep']],
    ['ledger: { file: a.db, keep: 10d }\n', '', ['ledger.file', 'ledger.keep']],
    ['drain: 1s', 'drain: 2s, body_limit: 1mb', []],
  ] as const) {
    const other = config(STARTED.replace(from, to))
    t.same(pendingKeys(started, other), keys, `${from} -> ${to}`)
    t.same(pendingKeys(other, started), keys, `${to} -> ${from}`)
  }
})
