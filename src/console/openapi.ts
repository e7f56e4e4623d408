import swagger from '@fastify/swagger'
import Fastify from 'fastify'
import { API, BEGINNERS, type Operation, type OperationName } from './api/api.ts'
import { Problem, type Role } from './api/shapes.ts'
import { isSafeMethod } from './http/caller.ts'

export const PREFIX = '/console/api'

const INFO = {
  title: 'Model Gateway: console',
  description: 'The API of the management console, on console.listen. POST /session sets a cookie, which ' +
    'every later request must send, and returns a token, which every request that changes something must send as ' +
    'x-csrf-token.',
}

const SECURITY = {
  session: { type: 'apiKey', in: 'cookie', name: 'gateway_console', description: 'With TLS: __Host-gateway_console' },
  csrf: { type: 'apiKey', in: 'header', name: 'x-csrf-token', description: 'From POST /session or GET /session' },
} as const

const ROLES: Readonly<Record<Role, string>> = { admin: 'admins', viewer: 'viewers', key: 'key holders' }

export function routeOf(name: OperationName): { readonly method: string, readonly url: string, readonly schema: object } {
  const { summary, tag, roles, params, query, body, status, response }: Operation = API[name]
  const [method = '', url = ''] = name.split(' ')
  const changes = !isSafeMethod(method) && !BEGINNERS.has(name)
  return {
    method,
    url,
    schema: {
      summary,
      description: roles === null ? 'For everybody.' : `For ${roles.map(role => ROLES[role]).join(', ')}.`,
      operationId: method.toLowerCase() + url.replace(/[^a-z]+([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      tags: [tag],
      security: roles === null && !changes ? [] : [{ session: [], ...changes && { csrf: [] } }],
      ...params && { params },
      ...query && { querystring: query },
      ...body && { body },
      response: {
        [status ?? 200]: status === 204 ? { type: 'null', description: 'Done' } : responseSchema(response),
        '4xx': { description: 'The request is refused', content: { 'application/json': { schema: Problem } } },
        '5xx': { description: 'The request failed', content: { 'application/json': { schema: Problem } } },
      },
    },
  }
}

function responseSchema(response: Operation['response']): object {
  const content = response === null ? { 'text/csv': { schema: { type: 'string' } } } : { 'application/json': { schema: response } }
  return { description: 'Done', content }
}

/** The API as an OpenAPI 3.1 document. @param version version of the gateway */
export async function consoleOpenApi(version: string): Promise<object> {
  const app = Fastify()
  // This server gets no requests: it only creates the description.
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)
  await app.register(swagger, { openapi: { openapi: '3.1.0', info: { ...INFO, version }, components: { securitySchemes: SECURITY } } })
  await app.register(async api => {
    for (const name of Object.keys(API) as OperationName[]) {
      api.route({ ...routeOf(name), handler: () => null })
    }
  }, { prefix: PREFIX })
  await app.ready()
  return app.swagger()
}
