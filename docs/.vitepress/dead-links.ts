import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'

/**
 * Follows every link inside the built site, anchors included. Links to other
 * sites are not followed.
 *
 * @param root directory of the built pages
 * @param base path that the site is served under
 * @returns one line for each link that leads nowhere: `page: link`
 */
export function deadLinks(root: string, base: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.html'))
  const pages = new Map(names.map(name => [name, readFileSync(join(root, name), 'utf8')]))
  const anchors = new Map([...pages].map(([name, html]) => [name, anchorsOf(html)]))
  const dead: string[] = []
  for (const [page, html] of pages) {
    for (const link of linksOf(html)) {
      const [path = '', anchor = ''] = link.split('#')
      const file = fileOf(root, base, page, path)
      const isAlive = file !== null && (anchor === '' || (anchors.get(file)?.has(decodeURIComponent(anchor)) ?? true))
      if (!isAlive) dead.push(`${page}: ${link}`)
    }
  }
  return [...new Set(dead)]
}

/** Links and sources of a page that stay on the site. */
function linksOf(html: string): string[] {
  // The mark-up of code is escaped: what looks like an attribute is one.
  const found = [...html.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'))
  return found.filter(link => !/^([a-z][a-z+.-]*:|\/\/)/i.test(link))
}

function anchorsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id))
}

/** The file that a link from a page leads to, relative to the root; null where there is none. */
function fileOf(root: string, base: string, page: string, link: string): string | null {
  const plain = decodeURIComponent(link.split('?')[0] ?? '')
  if (plain.startsWith('/') && !plain.startsWith(base)) return null
  const path = plain === '' ? page : plain.startsWith('/') ? plain.slice(base.length) : posix.join(posix.dirname(page), plain)
  const candidates = [path, `${path}.html`, posix.join(path, 'index.html')]
  return candidates.find(name => existsSync(join(root, name)) && statSync(join(root, name)).isFile()) ?? null
}
