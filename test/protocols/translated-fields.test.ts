import t from 'tap'
import { PROTOCOLS } from '../../src/protocols/index.ts'
import { outcomeOf } from '../../src/protocols/neutral/fields.ts'
import type { FieldRule, FieldTable } from '../../src/protocols/neutral/translation.ts'
import { sdkFields } from '../support/sdk/fields.ts'
import { clientSide, upstreamSide } from '../support/translation.ts'

/** The protocols with clients and upstreams: each of the twelve pairs is translated. */
const NAMES = PROTOCOLS.filter(({ translation }) => translation?.client && translation.upstream).map(({ name }) => name)
const tableOf = (name: string): FieldTable => clientSide(name).fields

/** Fields that the SDK does not have, and clients send: to other vendors, or from older versions. */
const NOT_IN_SDK: Readonly<Record<string, readonly string[]>> = {
  chat: ['top_k'], responses: [], messages: ['temperature', 'top_k', 'top_p'], generate: [],
}

const fields = sdkFields((protocol, path) => Object.keys(tableOf(protocol)).some(field => field.startsWith(`${path}.`)))

for (const [protocol, paths] of Object.entries(fields)) {
  t.test(`${protocol}: every field of the vendor's SDK has a rule`, async t => {
    t.ok(paths.length > 20, 'the compiler finds the fields')
    t.strictSame(paths.filter(path => !Object.hasOwn(tableOf(protocol), path)), [], 'fields without a rule')
    t.strictSame(Object.keys(tableOf(protocol)).filter(path => !paths.includes(path)).toSorted(), NOT_IN_SDK[protocol], 'rules without a field')
  })
}

t.test('each of the twelve pairs says what becomes of each field', async t => {
  t.strictSame(NAMES.toSorted(), Object.keys(fields).toSorted())
  const pairs = NAMES.flatMap(from => NAMES.filter(to => to !== from).map(to => [from, to] as const))
  t.equal(pairs.length, 12)
  for (const [from, to] of pairs) {
    for (const path of fields[from as keyof typeof fields]) {
      const outcome = outcomeOf(tableOf(from)[path] as FieldRule, upstreamSide(to).support)
      t.match(outcome, /^(mapped|partly|dropped|refused|ignored)$/, `${from} -> ${to}: ${path}`)
    }
  }
})
