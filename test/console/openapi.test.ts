import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import t from 'tap'
import { API as TABLE } from '../../src/console/api/api.ts'
import type { Operation } from '../../src/console/api/api.ts'
import { consoleOpenApi } from '../../src/console/openapi.ts'
import { PASSWORD, startConsole } from '../behaviour/console/console.ts'

interface Described {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly securitySchemes: Readonly<Record<string, unknown>> }
}

interface DescribedOperation {
  readonly operationId: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema: object
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> }
  readonly responses: Readonly<Record<string, {
    readonly description: string
    readonly content?: Readonly<Record<string, { readonly schema: object }>>
  }>>
}

const described = await consoleOpenApi('1') as Described
const operations = Object.entries(described.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`, path, operation,
  })))

t.test('openapi.json describes exactly the operations of the operation table', async t => {
  t.equal(described.openapi, '3.1.0')
  const wanted = Object.keys(TABLE).map(name => name.replace(' ', ' /console/api').replace(/:(\w+)/, '{$1}'))
  t.same(operations.map(({ name }) => name).sort(), wanted.sort())
  t.equal(
    new Set(operations.map(({ operation }) => operation.operationId)).size,
    operations.length, 'operation ids are unique',
  )
})

t.test('openapi.json is complete and valid', async t => {
  const ajv = new Ajv({ strict: false })
  ;(addFormats as unknown as (ajv: Ajv) => void)(ajv)
  for (const { name, path, operation } of operations) {
    const { parameters = [], requestBody, responses, security } = operation
    for (const [, parameter] of path.matchAll(/\{(\w+)\}/g)) {
      t.match(parameters.filter(one => one.in === 'path'), [{ name: parameter, in: 'path', required: true }], `${name}: ${parameter}`)
    }
    const schemas = [
      ...parameters.map(({ schema }) => schema),
      ...[requestBody, ...Object.values(responses)].flatMap(
        part => Object.values(part?.content ?? {}).map(({ schema }) => schema),
      ),
    ]
    for (const schema of schemas) t.doesNotThrow(() => ajv.compile(schema), name)
    for (const { description } of Object.values(responses)) t.ok(description, name)
    t.match(Object.keys(responses), [/^2\d\d$/, '4XX', '5XX'], name)
    for (const scheme of security.flatMap(Object.keys)) {
      t.ok(described.components.securitySchemes[scheme], `${name}: ${scheme}`)
    }
    const { roles }: Operation =
      TABLE[name.replace(' /console/api', ' ').replace(/\{(\w+)\}/, ':$1') as keyof typeof TABLE]
    if (roles !== null) t.ok(security.some(({ session }) => session), `${name} needs a session`)
  }
})

t.test('every logged-in user can read openapi.json', async t => {
  const gateway = await startConsole(t)
  t.equal((await gateway.browser().ask('/openapi.json')).status, 401)
  const viewer = await gateway.login({ name: 'eye', password: PASSWORD })
  const { json } = await viewer.ask('/openapi.json')
  t.same((json as Described).paths, described.paths)
  t.match(json, { info: { version: '0.0.0-test' } })
})
