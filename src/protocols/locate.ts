import { canonicalPath } from './azure-paths.ts'
import { checkPathEncoding, classifyPath } from './classify-path.ts'
import { KNOWN_PATHS } from './known-paths.ts'
import type { Classified } from './endpoint/protocol.ts'
import { canonicalQuery } from './request/query.ts'
import { parseTarget } from './request/target.ts'
import type { RequestTarget } from './request/target.ts'

/** What a request asks for. */
export interface LocatedRequest {
  readonly target: RequestTarget
  readonly classified: Classified
}

/**
 * Azure's paths mean those under /v1, and are routed and forwarded as these, unless a route names them: what
 * serves them as they are is known to the operator alone.
 *
 * @param raw the request's target
 * @param isNamed does a route name this path?
 * @throws GatewayError bad_request_target
 */
export function locate(raw: string, isNamed: (path: string) => boolean): LocatedRequest {
  const target = parseTarget(raw)
  const { path } = target
  const known = KNOWN_PATHS.get(path)
  if (known !== undefined) return { target, classified: known }
  const usual = canonicalPath(path)
  if (usual === null || isNamed(path)) return { target, classified: classifyChecked(path) }
  const query = canonicalQuery(target.query)
  const classified = classifyChecked(usual)
  const { endpoint: { modelIn, name }, pathModelEnd } = classified
  if (modelIn !== 'deployment' || name === 'other') {
    return { target: { ...target, path: usual, query }, classified }
  }
  return {
    target: { ...target, path: `/v1${usual.slice(pathModelEnd)}`, query },
    // The body is to name the model, as it stands in the path no more.
    classified: { ...classified, pathModelStart: 0, pathModelEnd: 0 },
  }
}

function classifyChecked(path: string): Classified {
  const classified = classifyPath(path)
  checkPathEncoding(path, classified)
  return classified
}
