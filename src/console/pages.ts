import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import files from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** The folder to which `npm run build:console` writes the pages, in a checkout and in the package. */
const ROOT = fileURLToPath(new URL('../../dist/console/web', import.meta.url))
const INDEX = join(ROOT, 'index.html')

/** Cached for one year: files below assets/ have a new name when their content changes. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
const NOT_BUILT = 'The pages of the console are not built. Build them with: npm run build:console\n'

/** Serves the pages. Every path that is not a file gets index.html, whose script reads the path. */
export async function servePages(app: FastifyInstance): Promise<void> {
  await app.register(files, {
    root: ROOT,
    cacheControl: false,
    preCompressed: true,
    setHeaders: (reply, path) => {
      void reply.header('cache-control', path.startsWith(join(ROOT, 'assets')) ? IMMUTABLE : 'no-cache')
    },
  })
  app.get('/', (_, reply) => sendPage(reply))
  app.setNotFoundHandler((request, reply) => {
    const isPage = request.method === 'GET' || request.method === 'HEAD'
    if (!isPage || request.url.startsWith('/console/assets/')) {
      return reply.code(404).type('text/plain; charset=utf-8').send('Not found.\n')
    }
    return sendPage(reply)
  })
}

/** Sends index.html. Checks at each request whether it exists, because it can be built while the gateway runs. */
function sendPage(reply: FastifyReply): FastifyReply {
  void reply.header('cache-control', 'no-cache')
  if (!existsSync(INDEX)) return reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT)
  return reply.code(200).type('text/html; charset=utf-8').send(readFileSync(INDEX))
}
