import type { FastifyInstance } from 'fastify'
import { UNRESTRICTED, type Identity } from '../auth/keyring.ts'
import { consoleKeyName } from '../config/sections/keys.ts'
import { CREDENTIAL_HEADERS } from '../protocols/http/vendor-headers.ts'
import { guard, authenticate, type Authentication } from './authentication.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import type { Context } from './context.ts'
import type { Session } from './login/sessions.ts'

/** Headers that upstreams must not get, because they are for the console. The console has already handled `Expect`. */
const WITHHELD_HEADERS = new Set<string>([
  'cookie', 'x-csrf-token', 'x-live', 'origin', 'referer', 'expect',
  'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest', 'sec-fetch-user', ...CREDENTIAL_HEADERS,
])

/**
 * Serves the playground. The pipeline handles its requests with the user's key, or, for other users, with the user's name and without
 * limits.
 */
export async function servePlayground(app: FastifyInstance, context: Context): Promise<void> {
  // Fastify must not read the body, because the pipeline reads it.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onRequest', app.rateLimit())
  app.addHook('onRequest', async request => {
    request.standing = await authenticate(context, request)
  })
  app.post('/*', { onRequest: guard({ roles: ['admin', 'key'] }) }, (request, reply) => {
    const { session } = request.standing as Authentication
    const url = (request.raw.url ?? '').slice(app.prefix.length)
    if (session === null || !url.startsWith('/v1')) {
      throw new ConsoleProblem('not_found', 'Use a path of the gateway API, such as /v1/chat/completions.')
    }
    const identity = identityOf(session)
    void reply.hijack()
    context.host.run(request.raw, reply.raw, { url, identity, strippedHeaders: WITHHELD_HEADERS })
  })
}

/** Serves the status. For users of the console, the response also contains the upstreams. */
export async function serveStatus(app: FastifyInstance, context: Context): Promise<void> {
  app.addHook('onRequest', app.rateLimit())
  app.route({
    method: ['GET', 'HEAD'],
    url: '/api/status',
    handler: async (request, reply) => {
      const { session } = await authenticate(context, request)
      void reply.hijack()
      context.host.run(request.raw, reply.raw, {
        url: request.raw.url ?? '', identity: session && identityOf(session), strippedHeaders: WITHHELD_HEADERS,
      })
    },
  })
}

function identityOf({ name, identity }: Session): Identity {
  if (identity !== null) return identity
  const key = Object.freeze({ name: consoleKeyName(name), digest: Buffer.alloc(0), models: null, limits: null })
  return { ...UNRESTRICTED, key, unlimited: true }
}
