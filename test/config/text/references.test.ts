import fc from 'fast-check'
import t from 'tap'
import { splitReferences, expandReferences } from '../../../src/config/text/references.ts'

const ENV = { NAME: 'value', EMPTY: '', NESTED: '${NAME}', BRACE: 'a}b' }

t.test('all references in a value are expanded', async t => {
  for (const [value, text] of [
    ['${NAME}', 'value'], ['a ${NAME} b', 'a value b'], ['${NAME}${NAME}', 'valuevalue'],
    ['${NONE:-x}', 'x'], ['${NONE:-}', ''], ['${EMPTY:-x}', 'x'], ['${EMPTY}', ''], ['${NAME:-x}', 'value'],
    ['${NONE:-a:b/c d}', 'a:b/c d'], ['$NAME', '$NAME'], ['{NAME}', '{NAME}'], ['$ {NAME}', '$ {NAME}'],
    ['$${NAME}', '${NAME}'], ['$${', '${'], ['a$${b', 'a${b'], ['$$${NAME}', '$${NAME}'],
    ['${NAME}$${NAME}', 'value${NAME}'], ['${BRACE}', 'a}b'], ['no reference', 'no reference'],
    ['', ''], ['$', '$'],
  ] as const) {
    const expanded = expandReferences(value, ENV)
    t.equal(expanded.text, text, value)
    t.strictSame(expanded.faults, [], value)
  }
})

t.test('a reference in the value of a variable is not expanded', async t => {
  t.equal(expandReferences('${NESTED}', ENV).text, '${NAME}')
})

t.test('expandReferences reports whether the value has a reference, and whether a default is used', async t => {
  t.match(expandReferences('x', ENV), { referenced: false, defaulted: false })
  t.match(expandReferences('$${x}', ENV), { referenced: false, defaulted: false })
  t.match(expandReferences('${NAME:-x}', ENV), { referenced: true, defaulted: false })
  t.match(expandReferences('${NONE:-x}', ENV), { referenced: true, defaulted: true })
})

t.test('an unset variable or a malformed reference is an error', async t => {
  for (const [value, message] of [
    ['${NONE}', /NONE is not set/],
    ['${}', /write/], ['${1A}', /write/], ['${A-b}', /write/], ['${A:b}', /write/],
    ['${NAME', /} of this/], ['${NONE:-${NAME}}', /another reference/], ['${constructor}', /is not set/],
    ['${__proto__}', /is not set/], ['${ NAME }', /write/],
  ] as const) {
    const { faults } = expandReferences(value, ENV)
    t.equal(faults.length, 1, value)
    t.match(faults[0]?.message, message, value)
    t.ok(value.startsWith(faults[0]?.raw ?? '?'), 'the error quotes the start of the value')
  }
  t.equal(expandReferences('${NONE} ${NAME} ${NONE2}', ENV).faults.length, 2)
})

t.test('property: the parts of splitReferences join to the original value', async () => {
  const part = fc.constantFrom('$', '{', '}', 'A', ':-', ' ', '${A}', '${A:-b}', '$${')
  const value = fc.array(part, { maxLength: 12 }).map(parts => parts.join(''))
  fc.assert(fc.property(value, value => splitReferences(value).map(({ raw }) => raw).join('') === value))
})

t.test('a value with escaped references expands to the value without escapes', async () => {
  fc.assert(fc.property(fc.string(), value => {
    const literal = value.replaceAll('$', '')
    const [escaped, wanted] = ['$${', '${'].map(sign => literal.replaceAll('{', () => sign))
    return expandReferences(escaped ?? '', {}).text === wanted
  }))
})
