import t from 'tap'
import { alternatives, childSchemas, readSchema, schemaWords, schemasByKey } from '../../src/config/json-schema.ts'
import type { JsonSchema } from '../../src/config/json-schema.ts'

const TOP: JsonSchema = {
  type: 'object',
  properties: { mode: { type: 'string', enum: ['on', 'off'] }, secret: { $ref: '#/definitions/secret' }, list: { type: 'array', items: { $ref: '#/definitions/entry' } } },
  additionalProperties: { type: 'object', properties: { mode: { type: 'number' } } },
  definitions: {
    secret: { anyOf: [{ type: 'string', writeOnly: true }, { $ref: '#/definitions/entry' }] },
    entry: { type: 'object', properties: { file: { type: 'string' } } },
  },
}

t.test('alternatives resolves $ref, except an unknown $ref, and returns the schemas of anyOf', async t => {
  t.strictSame(alternatives({ $ref: '#/definitions/secret' }, TOP), [{ type: 'string', writeOnly: true }, { type: 'object', properties: { file: { type: 'string' } } }])
  t.strictSame(alternatives({ type: 'number' }, TOP), [{ type: 'number' }])
  t.strictSame(alternatives({ $ref: '#/definitions/missing' }, TOP), [{ $ref: '#/definitions/missing' }])
})

t.test('childSchemas returns each child schema with its part of the path', async t => {
  t.strictSame(childSchemas(TOP).map(([step]) => step), ['.mode', '.secret', '.list', '.<name>'])
  t.strictSame(childSchemas({ type: 'array', items: { type: 'string' } }), [['[]', { type: 'string' }]])
  t.strictSame(childSchemas({ type: 'object', additionalProperties: false }), [])
})

t.test('schemaWords returns the keys and fixed values of a schema', async t => {
  t.strictSame([...schemaWords(TOP)].sort(), ['false', 'file', 'list', 'mode', 'null', 'off', 'on', 'secret', 'true'])
})

t.test('schemasByKey returns all schemas of each key', async t => {
  const keys = schemasByKey(TOP)
  t.strictSame(keys.get('mode'), [{ type: 'string', enum: ['on', 'off'] }, { type: 'number' }])
  t.equal(keys.get('secret')?.length, 2)
  t.equal(keys.get('constructor'), undefined)
})

t.test('readSchema returns a schema that does not allow references to the environment', async t => {
  const schema = readSchema()
  const refs = JSON.stringify(schema, (name, part: unknown) => (name === 'definitions' ? undefined : part))
  t.notMatch(refs, '#/definitions/reference"')
  t.ok(schemaWords(schema).has('body_limit'))
})
