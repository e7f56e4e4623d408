import { createHash } from 'node:crypto'

/**
 * What a Content-Security-Policy has to allow of a page: the SHA-256 of each
 * inline script in it, as a source expression (CSP level 3, section 2.3.1).
 */
export function inlineScripts(html: string): string[] {
  const scripts = html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)
  const sources = [...scripts].map(([, text = '']) => createHash('sha256').update(text).digest('base64'))
  return [...new Set(sources)].map(digest => `'sha256-${digest}'`)
}
