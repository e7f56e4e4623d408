import fc from 'fast-check'
import t from 'tap'
import { memberEdits } from '../../../src/protocols/json/member-edits.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'

function edited(text: string, members: Record<string, unknown>): string {
  const body = Buffer.from(text)
  return spliceBytes(body, memberEdits(body, new Map(Object.entries(members)))).toString()
}

t.test('members are set, added and removed in place', t => {
  t.equal(edited('{ "model" : "m", "n":1 }', { n: 2 }), '{ "model" : "m", "n":2 }')
  t.equal(edited('{"model":"m"}', { n: { a: [null] } }), '{"n":{"a":[null]},"model":"m"}')
  t.equal(edited('{}', { n: 1, o: '2' }), '{"n":1,"o":"2"}')
  t.equal(edited('{"a":1, "b":2, "c":3}', { b: null }), '{"a":1,  "c":3}')
  t.equal(edited('{"a":1, "b":2 , "c":3 }', { b: null, c: null }), '{"a":1 }')
  t.equal(edited('{ "a":1 }', { a: null }), '{  }')
  t.equal(edited('{"a":1,"b":2,"a":3}', { a: null }), '{"b":2}')
  t.equal(edited('{"\\u0061":1,"b":2}', { a: 5 }), '{"\\u0061":5,"b":2}')
  t.equal(edited('[1]', { a: 5 }), '[1]')
  t.end()
})

t.test('any edit of any object gives the object that it would give parsed', t => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const value = fc.oneof(fc.integer(), fc.string(), fc.constant([1, { a: ',' }]), fc.constant({ b: '}' }))
  fc.assert(fc.property(
    fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, minLength: 1 }), fc.dictionary(name, fc.oneof(value, fc.constant(null))), fc.boolean(),
    (entries, changes, isSpaced) => {
      const before = Object.fromEntries(entries)
      const kept = Object.keys(before).some(key => changes[key] !== null)
      // An object whose members are all removed while others are added is refused when it is inspected.
      fc.pre(kept || Object.values(changes).every(change => change === null))
      const expected = Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, each]) => each !== null))
      t.strictSame(JSON.parse(edited(JSON.stringify(before, null, isSpaced ? 2 : 0), changes)), JSON.parse(JSON.stringify(expected)))
    },
  ), { numRuns: 300 })
  t.end()
})
