import t from 'tap'
import { readSchema, writeSchema } from '../../../src/protocols/generate/schema.ts'

const WRITTEN: readonly (readonly [what: string, schema: object, expected: object])[] = [
  ['nothing', {}, {}],
  ['keywords that Gemini accepts', { type: 'object', title: 't', minItems: 1, minimum: 2, enum: ['a'] }, { type: 'object', title: 't', minItems: 1, minimum: 2, enum: ['a'] }],
  ['keywords without a meaning for a value', { $schema: 'x', default: 1, examples: [1], strict: true, type: 'string' }, { type: 'string' }],
  ['keywords that Gemini refuses', { type: 'string', pattern: '^a', minLength: 2 }, { type: 'string', description: '{pattern: "^a", minLength: 2}' }],
  ['a schema with a description', { description: 'A name', pattern: '^a' }, { description: 'A name\n\n{pattern: "^a"}' }],
  ['a constant', { const: 5 }, { enum: [5] }],
  ['definitions', { definitions: { a: { pattern: 'x' } }, $ref: '#/definitions/a' }, { $defs: { a: { description: '{pattern: "x"}' } }, $ref: '#/$defs/a' }],
  ['allOf with one part', { allOf: [{ type: 'string', const: 'a' }] }, { type: 'string', enum: ['a'] }],
  ['allOf with several parts', { allOf: [{ type: 'string' }, { minLength: 1 }] }, { description: '{allOf: [{"type":"string"},{"minLength":1}]}' }],
  ['choices', { anyOf: [{ const: 1 }, true], oneOf: [{ const: 2 }] }, { anyOf: [{ enum: [1] }, true], oneOf: [{ enum: [2] }] }],
  ['items', { items: { const: 1 }, additionalProperties: false }, { items: { enum: [1] }, additionalProperties: false }],
  ['properties named like keywords', { properties: { pattern: { type: 'string' }, const: { const: 1 } }, required: ['pattern'] }, { properties: { pattern: { type: 'string' }, const: { enum: [1] } }, required: ['pattern'] }],
]

for (const [what, schema, expected] of WRITTEN) {
  t.test(`a schema is written for Gemini: ${what}`, async t => t.strictSame(writeSchema(schema as never), expected))
}

const READ: readonly (readonly [what: string, schema: object, expected: object])[] = [
  ['types in capitals', { type: 'STRING', format: 'date' }, { type: 'string', format: 'date' }],
  ['types by number', { type: 6, properties: { a: { type: 1 }, b: { type: 7 } } }, { type: 'object', properties: { a: { type: 'string' }, b: { type: 'null' } } }],
  ['an unknown number', { type: 8 }, { type: undefined }],
  ['counts as text', { type: 'ARRAY', minItems: '1', maxItems: 5, items: { maxLength: '9' } }, { type: 'array', minItems: 1, maxItems: 5, items: { maxLength: 9 } }],
  ['null', { type: 'STRING', nullable: true }, { type: ['string', 'null'] }],
  ['null among fixed values', { type: 'STRING', enum: ['a'], nullable: true }, { type: ['string', 'null'], enum: ['a', null] }],
  ['null that is not allowed', { type: 'STRING', nullable: false }, { type: 'string' }],
  ['an example', { example: 1 }, { examples: [1] }],
  ['an order of properties', { propertyOrdering: ['a'], anyOf: [{ type: 'NUMBER' }] }, { anyOf: [{ type: 'number' }] }],
  ['properties named like keywords', { properties: { nullable: { type: 'BOOLEAN' }, type: { type: 'STRING' } } }, { properties: { nullable: { type: 'boolean' }, type: { type: 'string' } } }],
]

for (const [what, schema, expected] of READ) {
  t.test(`a schema of Gemini is read: ${what}`, async t => t.strictSame(readSchema(schema as never), expected))
}
