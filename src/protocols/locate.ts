import { checkPathEncoding, classifyPath } from './classify-path.ts'
import { KNOWN_PATHS } from './known-paths.ts'
import { canonicalPath } from './openai-paths.ts'
import type { Classified } from './endpoint/protocol.ts'
import { canonicalQuery } from './request/query.ts'
import { parseTarget, type RequestTarget } from './request/target.ts'

export interface LocatedRequest {
  readonly target: RequestTarget
  readonly classified: Classified
}

/**
 * Finds the endpoint of a request. A path of Azure is routed and forwarded as the equivalent path under /v1, unless a route names it: only
 * the operator knows which server handles it.
 * @param raw the request's target @throws GatewayError bad_request_target
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
  if (modelIn !== 'deployment' || name === 'other') return { target: { ...target, path: usual, query }, classified }
  return {
    target: { ...target, path: `/v1${usual.slice(pathModelEnd)}`, query },
    // The body must name the model, because the path no longer does.
    classified: { ...classified, pathModelStart: 0, pathModelEnd: 0 },
  }
}

function classifyChecked(path: string): Classified {
  const classified = classifyPath(path)
  checkPathEncoding(path, classified)
  return classified
}
