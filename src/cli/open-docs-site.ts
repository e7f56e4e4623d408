import type { Logger } from 'pino'
import type { Config } from '../config/types.ts'
import type { Site } from '../gateway/docs-site.ts'

/** @returns null = the configuration has no address for the documentation @throws the system's error if the address cannot be used */
export async function openSite({ docs, server }: Config, log: Logger): Promise<Site | null> {
  if (docs === null) return null
  const { SITE_ROOT, serveSite } = await import('../gateway/docs-site.ts')
  const { reusePort, maxConnections, idle } = server
  const site = await serveSite({ listen: docs.listen, reusePort, maxConnections, idle, root: SITE_ROOT })
  if (!site.built) log.warn('docs.listen: the documentation is not built; build it with: npm run build:docs')
  return site
}
