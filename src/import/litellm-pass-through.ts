import { CREDENTIAL_NAME } from '../config/text/secrets.ts'
import type { Note } from './litellm-notes.ts'
import { toReference, variableOf } from './litellm-references.ts'
import type { Route } from './litellm-routes.ts'
import { formatPath, type Path, type Source } from './source.ts'

const LIST: Path = ['general_settings', 'pass_through_endpoints']

export interface PassThrough {
  /** Upstreams of gateway.yaml, by name. */
  readonly upstreams: ReadonlyMap<string, object>
  readonly routes: readonly Route[]
  readonly notes: readonly Note[]
}

/** Reads general_settings.pass_through_endpoints: paths whose requests are forwarded unchanged to another server. */
export function readPassThrough(source: Source): PassThrough {
  const upstreams = new Map<string, object>()
  const routes: Route[] = []
  const notes: Note[] = []
  for (let index = 0; index < source.length(LIST); index++) {
    const at = [...LIST, index]
    const note = (path: Path, text: string): void => void notes.push({ place: source.place(path), setting: formatPath(path), text })
    const path = source.text([...at, 'path'])
    const target = source.text([...at, 'target'])
    source.take([...at, 'forward_headers'])
    source.take([...at, 'id'])
    source.take([...at, 'auth'])
    const withSubpaths = source.take([...at, 'include_subpath']) === true
    const url = path === null || target === null ? null : serverOf(target, path)
    if (path === null || url === null) {
      note(at, 'the gateway forwards the path as the client sends it, so the target must end with it: write a route with a path and an upstream')
      continue
    }
    const name = `pass-through-${index + 1}`
    upstreams.set(name, { url, ...headersOf(source, [...at, 'headers'], note) })
    routes.push({ path: withSubpaths ? `${path}*` : path, to: [{ upstream: name }] })
  }
  return { upstreams, routes, notes }
}

/** The target's address without the path; null = the target's path differs from the path of the endpoint. */
function serverOf(target: string, path: string): string | null {
  const url = URL.parse(target)
  if (url === null || !/^https?:$/.test(url.protocol) || !path.startsWith('/') || url.search !== '') return null
  const there = url.pathname.replace(/\/$/, '')
  return there.endsWith(path) ? `${url.origin}${there.slice(0, -path.length)}` : null
}

/** The members `auth` and `headers` of the upstream. A credential is always written as a reference to the environment. */
function headersOf(source: Source, path: Path, note: (path: Path, text: string) => void): object {
  const written = source.take(path)
  const entries = typeof written === 'object' && written !== null ? Object.entries(written) : []
  const headers = new Map<string, string>()
  let auth: object | null = null
  for (const [name, value] of entries) {
    const lower = name.toLowerCase()
    // Skip these headers, because the gateway forwards the client's own.
    if (['content-type', 'accept', 'content-length'].includes(lower)) continue
    const [, scheme = '', rest = ''] = /^(bearer +)?(.*)$/is.exec(String(value)) ?? []
    if (lower !== 'authorization' && !CREDENTIAL_NAME.test(name)) {
      headers.set(lower, toReference(rest))
      continue
    }
    const variable = variableOf(rest) ?? name.toUpperCase().replace(/\W/g, '_')
    if (variableOf(rest) === null) note([...path, name], `the value itself is not copied: put it into the environment as ${variable}`)
    auth = scheme === '' ? { header: lower, value: `\${${variable}}` } : { bearer: `\${${variable}}` }
  }
  return { ...auth && { auth }, ...headers.size > 0 && { headers: Object.fromEntries(headers) } }
}
