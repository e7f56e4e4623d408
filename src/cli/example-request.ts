import { compileGlob } from '../config/glob.ts'
import type { Config } from '../config/types.ts'

const ENDPOINTS = [
  { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'Hello' }] } },
  { path: '/v1/messages', body: { max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }] } },
]

/**
 * A curl command for the first model that a route names without a glob, with a path that the route accepts; null = there is no such model.
 * @param key a key that may be shown; null = the command uses the variable GATEWAY_KEY
 */
export function exampleRequest(config: Config, base: string, key: string | null): string | null {
  for (const route of config.routes) {
    const model = route.models?.find(glob => !glob.includes('*'))
    const endpoint = ENDPOINTS.find(({ path }) => route.path === null || compileGlob(route.path)(path))
    if (model === undefined || endpoint === undefined) continue
    const credential = key === null ? '"authorization: Bearer $GATEWAY_KEY"' : shellQuoted(`authorization: Bearer ${key}`)
    return [
      `curl ${shellQuoted(base + endpoint.path)}`,
      ...config.auth === 'open' ? [] : [`-H ${credential}`],
      `-H ${shellQuoted('content-type: application/json')}`,
      `-d ${shellQuoted(JSON.stringify({ model, ...endpoint.body }))}`,
    ].join(' \\\n  ')
  }
  return null
}

/** Quotes a text for a POSIX shell, unless no character is special. */
function shellQuoted(text: string): string {
  return /^[\w:/.@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
