import * as http from 'node:http'
import compress from '@fastify/compress'
import cookie from '@fastify/cookie'
import limit from '@fastify/rate-limit'
import Fastify from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { destroyNow, type ClientRequest, type ClientResponse } from '../proxy/client/client.ts'
import { API, BEGINNERS, type Operation, type OperationName } from './api/api.ts'
import { guard, authenticate, type Authentication } from './authentication.ts'
import { cached } from './http/cached.ts'
import { callerOf, isSafeMethod } from './http/caller.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { OperationRequest, Context, Operations } from './context.ts'
import { setPendingLogin, setToken } from './http/cookies.ts'
import { serveLoginCallback } from './login-callback.ts'
import { PREFIX, consoleOpenApi, routeOf } from './openapi.ts'
import { servePages } from './pages.ts'
import { servePlayground, serveStatus } from './playground.ts'
import { sendCsv, sendProblem } from './replies.ts'
import type { CsvFile } from './reports/csv.ts'
import { validationProblem, validatorCompiler } from './http/schemas.ts'
import { secureHeaders } from './http/security-headers.ts'

export interface App {
  handle(req: ClientRequest, res: ClientResponse): void
  close(): Promise<void>
}

/** Maximum bytes of a body. All operations have small bodies. */
const BODY_LIMIT = 64 * 1024
/** Maximum requests from one address. A page sends about twenty, and repeats some of them every few seconds. */
const MAX_REQUESTS_PER_MINUTE = 3_000
/** Minimum bytes of a response that is compressed. */
const MIN_COMPRESSED = 1_024
/** Leaves out the headers about the limit, because the pages send far fewer requests. */
const NO_RATE_LIMIT_HEADERS = { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false }

/** The API and the pages of the console. The gateway passes requests to `handle`. @param bodyTimeout ms in which a body must arrive */
export async function createApp(context: Context, operations: Operations, bodyTimeout: number): Promise<App> {
  let route: http.RequestListener = () => {}
  const app = Fastify({
    serverFactory: handler => {
      route = handler
      return http.createServer()
    },
    bodyLimit: BODY_LIMIT,
    routerOptions: { maxParamLength: 1024 },
    // Handles paths that cannot be parsed. Outside of the API, redirects to the first page.
    frameworkErrors: (error, request, reply) => (
      isSafeMethod(request.method) && !request.url.startsWith(`${PREFIX}/`)
        ? reply.redirect('/console/')
        : sendProblem(context.host, error, request, reply)),
  })
  app.setValidatorCompiler(validatorCompiler())
  app.setSchemaErrorFormatter((errors, part) => validationProblem(errors as never, part))
  app.setErrorHandler((error, request, reply) => sendProblem(context.host, error, request, reply))
  app.decorateRequest('standing', null)
  await app.register(cookie)
  await app.register(limit, {
    global: false,
    max: MAX_REQUESTS_PER_MINUTE,
    addHeaders: NO_RATE_LIMIT_HEADERS,
    addHeadersOnExceeding: NO_RATE_LIMIT_HEADERS,
    keyGenerator: request => callerOf(context.host, request.raw).address,
    errorResponseBuilder: (_, { ttl }) =>
      new ConsoleProblem('too_many', 'Too many requests. Try again in a moment.', { retryAfter: Math.ceil(ttl / 1_000) }),
  })
  await secureHeaders(app, request => callerOf(context.host, (request as FastifyRequest).raw).secure)
  await app.register(async api => {
    await api.register(compress, { threshold: MIN_COMPRESSED, encodings: ['br', 'gzip'], inflateIfDeflated: false, globalDecompression: false })
    api.removeContentTypeParser('text/plain')
    api.addHook('onRequest', api.rateLimit())
    api.addHook('onRequest', async (request, reply) => {
      void reply.header('cache-control', 'no-store')
      if (!isSafeMethod(request.method)) enforceBodyTimeout(request.raw, reply.raw, bodyTimeout)
      request.standing = await authenticate(context, request)
    })
    for (const name of Object.keys(API) as OperationName[]) addOperation(api, name, context, operations)
    const description = cached(() => consoleOpenApi(context.host.current().version), Infinity, () => 0)
    api.get('/openapi.json', { onRequest: guard({ roles: [] }) }, description)
    api.all('/*', () => {
      throw new ConsoleProblem('not_found', 'There is no such operation.')
    })
  }, { prefix: PREFIX })
  await app.register(api => servePlayground(api, context), { prefix: `${PREFIX}/playground` })
  await app.register(api => serveStatus(api, context))
  await app.register(api => serveLoginCallback(api, context))
  await app.register(servePages, { prefix: '/console' })
  await app.ready()
  return {
    // A cast is needed: Fastify also accepts requests of HTTP/2.
    handle: (req, res) => route(req as http.IncomingMessage, res as http.ServerResponse),
    close: () => app.close(),
  }
}

/**
 * Sets a deadline for the body. The listener sets none, because the pipeline has its own, but requests to the console's API do not pass the
 * pipeline.
 */
function enforceBodyTimeout(req: http.IncomingMessage, res: http.ServerResponse, bodyTimeout: number): void {
  const timer = setTimeout(() => destroyNow(res), bodyTimeout).unref()
  const whole = (): void => clearTimeout(timer)
  req.once('end', whole).once('close', whole)
}

/** Tells the client that figures include only this gateway, because PostgreSQL cannot be read. */
function nameScope({ reports }: Context, reply: FastifyReply): void {
  if (reports.clusterFailure !== null) void reply.header('x-gateway-scope', 'this-gateway')
}

function addOperation<N extends OperationName>(api: FastifyInstance, name: N, context: Context, operations: Operations): void {
  const { roles, status, response }: Operation = API[name]
  const route = routeOf(name)
  api.route({
    ...route,
    // Not for CSV: to respond to HEAD, the server would create the whole table.
    exposeHeadRoute: response !== null,
    onRequest: guard({ roles, opens: BEGINNERS.has(name) }),
    handler: async (request, reply) => {
      const { caller, token, session } = request.standing as Authentication
      const asked = {
        session, caller, token, query: request.query, params: request.params, body: request.body,
        setToken: (token: string | null) => setToken(reply, caller, token),
        setPendingLogin: (pending: string) => setPendingLogin(reply, caller, pending),
      } as unknown as OperationRequest<N>
      const result = operations[name](asked)
      if (response === null) return sendCsv(reply, result as CsvFile, () => nameScope(context, reply))
      const body = await (result as Promise<unknown>)
      nameScope(context, reply)
      return reply.code(status ?? 200).send(status === 204 ? undefined : body)
    },
  })
}
