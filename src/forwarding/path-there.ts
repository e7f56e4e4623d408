import type { Upstream } from '../config/types.ts'

/** The client's path as an upstream has it behind its url: in the place of `/v1` stands its own `v1`. */
export function pathThere({ v1 }: Upstream, path: string): string {
  if (v1 === null || (path !== '/v1' && !path.startsWith('/v1/'))) return path
  return v1 + path.slice('/v1'.length) || '/'
}
