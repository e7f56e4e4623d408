import { readFileSync } from 'node:fs'
import t from 'tap'
import { behaviourOfModel, GRAMMAR, parseBehaviour } from '../../../src/simulator/behaviour.ts'
import { start } from '../../simulator/start.ts'

const DOCS = readFileSync(new URL('../../../docs/simulator.md', import.meta.url), 'utf8')

t.test('the table in the docs has exactly one row for each behaviour', async t => {
  const rows = [...DOCS.matchAll(/^\| `([a-z]\w*)(?:=[A-Z]+)?` \|/gm)].map(match => match[1])
  t.same(rows.toSorted(), Object.keys(GRAMMAR).toSorted())
})

t.test('a row of the table shows a value only if the behaviour takes a value', async t => {
  for (const [, key = '', value] of DOCS.matchAll(/^\| `([a-z]\w*)(=[A-Z]+)?` \|/gm)) {
    if (value === undefined) t.same(parseBehaviour(key), { [key]: true }, key)
    else t.throws(() => parseBehaviour(key), key)
  }
})

t.test('every list of behaviours in the docs is valid', async t => {
  const headers = [...DOCS.matchAll(/x-simulate: ([^'`\n]+)/g)].map(match => match[1] ?? '')
  const models = [...DOCS.matchAll(/\bsim(,[a-z0-9_=,]+)/g)].map(match => behaviourOfModel(match[0]))
  t.ok(headers.length > 1 && models.length > 2)
  for (const list of [...headers, ...models]) t.doesNotThrow(() => parseBehaviour(list), list)
})

t.test('every path in the table of endpoints is served', async t => {
  const { url } = await start(t)
  const table = DOCS.slice(DOCS.indexOf('## Endpoints'), DOCS.indexOf('## Statistics'))
  for (const [, cell = ''] of table.matchAll(/^\| (`.*?`) (?:and below.*?)?\|/gm)) {
    const paths = [...cell.matchAll(/`(?:(POST|GET) )?(\/[^`]*)`/g)]
    const method = paths[0]?.[1] ?? 'GET'
    for (const [, , path = ''] of paths) {
      const body = method === 'POST' ? { body: '{}', headers: { 'content-type': 'application/json' } } : {}
      const res = await fetch(url + path.replace('{model}', 'sim,tokens=1'), { method, ...body })
      t.equal(res.status, 200, `${method} ${path}`)
      await res.arrayBuffer()
    }
  }
})

t.test('every curl example in the docs works', async t => {
  const { url } = await start(t)
  const examples = [...DOCS.matchAll(/^curl [^]*?(?=\n\n|\n```)/gm)].map(match => match[0])
  t.equal(examples.length, 4)
  for (const example of examples) {
    const path = /127\.0\.0\.1:8090(\S+)/.exec(example)?.[1] ?? ''
    const headers = [...example.matchAll(/-H '([^:]+): ([^']+)'/g)]
    const body = /-d '([^']+)'/.exec(example)?.[1]
    const res = await fetch(url + path, {
      headers: headers.map(([, name = '', value = '']): [string, string] => [name, value]),
      ...(body === undefined ? {} : { method: 'POST', body }),
    })
    t.equal(res.status, example.includes('status=503') ? 503 : 200, path)
    await res.arrayBuffer()
  }
})
