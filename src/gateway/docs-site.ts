import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import helmet from '@fastify/helmet'
import files from '@fastify/static'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import { createSideServer } from '../base/server-limits.ts'
import { localUrl } from '../config/listen-address.ts'
import type { ServerConfig } from '../config/types.ts'
import { inlineScripts } from './inline-scripts.ts'

/** Where `npm run build:docs` writes the pages, in a checkout and in the package. */
export const SITE_ROOT = fileURLToPath(new URL('../../dist/docs', import.meta.url))

/** Beyond `maxConnections`, the connection with the oldest last request is closed. `root` has the built pages. */
export interface SiteOptions extends Pick<ServerConfig, 'listen' | 'reusePort' | 'maxConnections' | 'idle'> {
  readonly root: string
}

export interface Site {
  /** With the actual port, such as `http://127.0.0.1:8082`. */
  readonly url: string
  /** false = every request gets a 503 that says how to build the pages */
  readonly built: boolean
  /** Stops listening at once, and resolves when the open responses have ended. */
  close(): Promise<void>
}

/** One year: file names in assets/ change with their content. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
const NOT_BUILT = 'The documentation is not built. Build it with: npm run build:docs\n'

/** @throws the system's error when the address cannot be listened on */
export async function serveSite({ listen, reusePort, maxConnections, idle, root }: SiteOptions): Promise<Site> {
  const index = join(root, 'index.html')
  const built = existsSync(index)
  const app = Fastify({
    forceCloseConnections: 'idle', routerOptions: { ignoreTrailingSlash: false },
    serverFactory: handler => createSideServer(handler, maxConnections, { keepAlive: idle }),
  })
  await addSecurityHeaders(app, built ? inlineScripts(readFileSync(index, 'utf8')) : [])
  if (built) await servePages(app, root)
  else app.setNotFoundHandler((_, reply) => reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT))
  await app.ready()
  app.server.listen(listen.fd === undefined ? { ...listen, reusePort } : { fd: listen.fd })
  try {
    await once(app.server, 'listening')
    return { url: localUrl(app.server.address(), false), built, close: () => close(app) }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** The framework does not close a server that it has not created. */
async function close(app: FastifyInstance): Promise<void> {
  app.server.close()
  await Promise.all([once(app.server, 'close'), app.close()])
}

async function addSecurityHeaders(app: FastifyInstance, scripts: readonly string[]): Promise<void> {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'", ...scripts],
        // Inline styles are allowed because code is coloured by style attributes.
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        fontSrc: ["'self'"],
        connectSrc: ["'self'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // The listener speaks plain HTTP: only the proxy in front knows whether there is TLS.
    strictTransportSecurity: false,
  })
}

async function servePages(app: FastifyInstance, root: string): Promise<void> {
  const missing = readFileSync(join(root, '404.html'))
  await app.register(files, {
    root,
    extensions: ['html'],
    cacheControl: false,
    preCompressed: true,
    setHeaders: (reply, path) => {
      const isHashed = path.startsWith(join(root, 'assets'))
      void reply.header('cache-control', isHashed ? IMMUTABLE : 'no-cache')
    },
  })
  // A page with the same name as a directory: without this route the directory would be served.
  for (const name of readdirSync(root)) {
    const page = `${name}.html`
    if (existsSync(join(root, page))) app.get(`/${name}`, (_, reply) => reply.sendFile(page))
  }
  app.setNotFoundHandler((_, reply) => reply.code(404).type('text/html; charset=utf-8').send(missing))
}
