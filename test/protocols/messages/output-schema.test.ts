import t from 'tap'
import { fitsStrict, outputSchema } from '../../../src/protocols/messages/output-schema.ts'

const WRITTEN: readonly (readonly [what: string, schema: object, expected: object])[] = [
  ['an object is closed', { type: 'object', properties: { a: { type: 'string' } } }, { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }],
  ['an open object is closed', { type: 'object', additionalProperties: true }, { type: 'object', additionalProperties: false }],
  ['properties make an object', { properties: {} }, { properties: {}, additionalProperties: false }],
  ['a bound becomes a description', { type: 'integer', minimum: 1, maximum: 5 }, { type: 'integer', description: '{minimum: 1, maximum: 5}' }],
  ['a description stays', { description: 'Age', minimum: 1 }, { description: 'Age\n\n{minimum: 1}' }],
  ['minItems: 1 stays', { type: 'array', minItems: 1 }, { type: 'array', minItems: 1 }],
  ['minItems: 0 stays', { minItems: 0 }, { minItems: 0 }],
  ['minItems above 1 becomes a description', { type: 'array', minItems: 2 }, { type: 'array', description: '{minItems: 2}' }],
  ['oneOf becomes anyOf', { oneOf: [{ maxLength: 1 }, { type: 'null' }] }, { anyOf: [{ description: '{maxLength: 1}' }, { type: 'null' }] }],
  ['parts are converted', { items: { type: 'object' }, $defs: { a: { type: 'object' } }, allOf: [{ type: 'object' }] }, {
    items: { type: 'object', additionalProperties: false }, $defs: { a: { type: 'object', additionalProperties: false } }, allOf: [{ type: 'object', additionalProperties: false }],
  }],
  ['properties named like keywords stay', { properties: { minimum: { type: 'number' }, items: { type: 'object' } } }, {
    properties: { minimum: { type: 'number' }, items: { type: 'object', additionalProperties: false } }, additionalProperties: false,
  }],
  ['a truth value is a schema', { items: true, anyOf: [false] }, { items: true, anyOf: [false] }],
]

for (const [what, schema, expected] of WRITTEN) {
  t.test(`a schema for structured outputs: ${what}`, async t => t.strictSame(outputSchema(schema as never), expected))
}

const CLOSED = { type: 'object', properties: { a: {} }, required: ['a'], additionalProperties: false }
const STRICT: readonly (readonly [what: string, schema: object, expected: boolean])[] = [
  ['no object', { type: 'string' }, true], ['a closed object', CLOSED, true], ['an open object', { ...CLOSED, additionalProperties: true }, false], ['an object that does not say', { type: 'object' }, false],
  ['an optional member', { ...CLOSED, required: [] }, false], ['no list of required members', { type: 'object', properties: { a: {} }, additionalProperties: false }, false], ['an empty object', { type: 'object', additionalProperties: false }, true],
  ['properties without a type', { properties: { a: {} }, additionalProperties: false }, false], ['an open object in a list', { type: 'array', items: { type: 'object' } }, false], ['one in a choice', { anyOf: [CLOSED, { type: 'object' }] }, false],
  ['an open object in a definition', { ...CLOSED, $defs: { b: { type: 'object' } } }, false], ['an open object in a member', { ...CLOSED, properties: { a: { type: 'object' } } }, false], ['closed ones in all places', { ...CLOSED, properties: { a: CLOSED }, $defs: { b: CLOSED }, anyOf: [CLOSED] }, true],
]

for (const [what, schema, expected] of STRICT) {
  t.test(`OpenAI ${expected ? 'accepts' : 'refuses'} a strict schema: ${what}`, async t => t.equal(fitsStrict(schema as never), expected))
}

t.test('a deep schema is read without recursion', async t => {
  let schema: object = { type: 'object' }
  for (let n = 0; n < 50_000; n++) schema = { items: schema }
  t.equal(fitsStrict(schema as never), false)
})
