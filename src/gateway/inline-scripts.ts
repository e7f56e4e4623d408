import { createHash } from 'node:crypto'

/** The SHA-256 of each inline script, as a source for a Content-Security-Policy (CSP level 3, section 2.3.1). */
export function inlineScripts(html: string): string[] {
  const scripts = html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g)
  const sources = [...scripts].map(([, text = '']) => createHash('sha256').update(text).digest('base64'))
  return [...new Set(sources)].map(digest => `'sha256-${digest}'`)
}
