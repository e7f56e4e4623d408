import { readFileSync } from 'node:fs'
import t from 'tap'
import { ROW_FIELDS, sumFields } from '../../src/ledger/read/export-fields.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'

const page = readFileSync(new URL('../../docs/operation/log.md', import.meta.url), 'utf8')

/** The names in a part of the page: those in the first column of its tables, and all. */
function named(part: string): { columns: Set<string>; all: Set<string> } {
  const names = (text: string) => [...text.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name as string)
  const lines = part.split('\n')
  const columns = lines.filter(line => line.startsWith('| `')).flatMap(line => names(line.split(' | ')[0] ?? ''))
  return { columns: new Set(columns), all: new Set(names(part)) }
}

const rows = page.slice(page.indexOf('## The rows of the ledger'))
const line = page.slice(page.indexOf('| Field |'), page.indexOf('## How a request ends'))

t.test('docs/operation/log.md lists the fields of a ledger row and of a sum', async t => {
  const { columns, all } = named(rows)
  t.strictSame([...columns].sort(), ROW_FIELDS.map(({ name }) => name).sort())
  for (const { name } of sumFields(['key']).slice(1)) t.ok(all.has(name), name)
})

t.test('docs/operation/log.md lists exactly the fields of the request log line', async t => {
  const { url, waitForLog } = await startTestGateway(t, `
upstreams: { a: { simulator: true }, b: { simulator: true }, gone: { url: "http://127.0.0.1:1" } }
routes:
  - { model: m, to: [{ upstream: a, model: "x,status=500" }, { upstream: b, model: y }] }
  - { model: gone, to: gone }
models: { y: { price: { input: 1, output: 1 } } }
attribution: { user: [body], tags: { project: [header] } }
edit: { body: { set: { seed: 1 } } }
`)
  const seen = new Set<string>()
  for (const model of ['m', 'gone']) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'x-gateway-tags': 'project=a,team=b' },
      body: JSON.stringify({ model, messages: [], user: 'u1' }),
    })
    await answer.bytes()
    const told = await waitForLog(each => each['msg'] === 'exchange' && each['model'] === model)
    for (const name of Object.keys(told)) seen.add(name)
  }
  // Without the fields that each log line has; `worker` is only in lines of several processes.
  for (const name of ['level', 'time', 'pid', 'hostname', 'msg']) seen.delete(name)
  seen.add('worker')
  // Only in lines of requests that waited.
  seen.add('queued_ms')
  t.strictSame([...named(line).columns].sort(), [...seen].sort())
})
