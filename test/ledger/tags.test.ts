import { deepStrictEqual } from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { sqliteTag, storedTag, tagValue } from '../../src/ledger/tags.ts'

const db = new DatabaseSync(':memory:')
const read = db.prepare(`SELECT ${sqliteTag('project')} AS value, instr(tags, :wanted) > 0 AS found FROM (SELECT :tags AS tags)`)

t.test('a value is read and found as it was stored, whatever it and other tags contain', async t => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('"', '\\', '","project":"a', 'a\u2028b', '{}', '\\"project\\":\\"a'))
  const holds = fc.property(value, value, fc.option(value), (wanted, env, project) => {
    const tags = JSON.stringify({ env, ...project !== null && { project } })
    const { value: found, found: isFound } = read.get({ tags, wanted: storedTag('project', wanted) }) ?? {}
    deepStrictEqual([tagValue(found), isFound], [project, project === wanted ? 1 : 0], tags)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 300 }))
})

t.test('what is no tag has no value', async t => {
  for (const tags of ['{"project":', '[]', '{"project":1}', '{"project":{"a":"b"}}', '"project"', null]) {
    t.equal(tagValue(read.get({ tags, wanted: '' })?.['value']), null, String(tags))
  }
  t.throws(() => sqliteTag(`a' OR 1`), RangeError)
})
