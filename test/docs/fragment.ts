import { parse, stringify } from 'yaml'

type Settings = Record<string, unknown>

/**
 * A gateway.yaml around a part of one: upstreams that the routes name and the
 * part does not define are simulated, and what a whole file needs is added.
 */
export function completed(text: string): string {
  const part = parse(text) as Settings | null
  if (part === null || typeof part !== 'object' || Array.isArray(part)) {
    throw new Error('this is no part of a gateway.yaml')
  }
  const upstreams = { ...part['upstreams'] as Settings | undefined }
  for (const name of targetsIn(part['routes'])) upstreams[name] ??= { simulator: true }
  if (Object.keys(upstreams).length === 0) upstreams['demo'] = { simulator: true }
  const routes = part['routes'] ?? Object.keys(upstreams).map(to => ({ model: `${to}-*`, to }))
  return stringify({ ...part, upstreams, routes })
}

function targetsIn(routes: unknown): string[] {
  const list = Array.isArray(routes) ? routes as Settings[] : []
  return list.flatMap(({ to, on }) => [to, ...Object.values(on ?? {}) as unknown[]].flat())
    .flatMap(
      target => (typeof target === 'string' ? target : (target as Settings | undefined)?.['upstream'] ?? []),
    )
    .filter(name => typeof name === 'string')
}

/**
 * Each variable that a text refers to without a default, with a
 * value that is good for an address, a key or a name.
 */
export function valuesFor(text: string): Record<string, string> {
  const names = [...text.matchAll(/\$\{([A-Za-z_]\w*)\}/g)].map(([, name = '']) => name)
  const valueOf = (name: string): string =>
    (/_URL$|_BASE$/.test(name) ? 'https://example.com' : `${name.toLowerCase()}-0123456789abcdef`)
  return Object.fromEntries(names.map(name => [name, valueOf(name)]))
}
