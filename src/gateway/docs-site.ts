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

/** The folder to which `npm run build:docs` writes the pages, in a checkout and in the package. */
export const SITE_ROOT = fileURLToPath(new URL('../../dist/docs', import.meta.url))

/** Above `maxConnections`, the connection whose last request is the oldest is closed. `root` is the folder with the built pages. */
export interface SiteOptions extends Pick<ServerConfig, 'listen' | 'reusePort' | 'maxConnections' | 'idle'> {
  readonly root: string
}

export interface Site {
  /** The URL with the actual port, such as `http://127.0.0.1:8082`. */
  readonly url: string
  /** false = the pages are not built: every request gets a 503 that says how to build them. */
  readonly built: boolean
  /** Stops listening at once. Resolves when all open responses have ended. */
  close(): Promise<void>
}

/** Cached for one year: files in assets/ have a new name when their content changes. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
const NOT_BUILT = 'The documentation is not built. Build it with: npm run build:docs\n'

/** @throws the system's error if the address cannot be used */
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

/** Closes the server and the app, because Fastify does not close a server that it has not created. */
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
        // Inline styles are needed: code is coloured by style attributes.
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        fontSrc: ["'self'"],
        connectSrc: ["'self'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    // The listener uses plain HTTP. Only the proxy in front knows whether clients use TLS.
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
  // Add routes for pages that have the same name as a directory: otherwise the directory would be served.
  for (const name of readdirSync(root)) {
    const page = `${name}.html`
    if (existsSync(join(root, page))) app.get(`/${name}`, (_, reply) => reply.sendFile(page))
  }
  app.setNotFoundHandler((_, reply) => reply.code(404).type('text/html; charset=utf-8').send(missing))
}
