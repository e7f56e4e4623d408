import { checkPathEncoding, classifyPath } from './classify-path.ts'
import { KNOWN_PATHS } from './known-paths.ts'
import { canonicalPath, versionedPath } from './openai-paths.ts'
import type { Classified } from './endpoint/protocol.ts'
import { canonicalQuery } from './request/query.ts'
import { parseTarget, type RequestTarget } from './request/target.ts'

export interface LocatedRequest {
  readonly target: RequestTarget
  readonly classified: Classified
}

/**
 * Finds the endpoint of a request. If no route names an Azure path, or a path without /v1, the request is routed and forwarded with the
 * equivalent path under /v1.
 * A named path stays, because only the operator knows which server handles it.
 * @param raw the request's target
 * @param isNamed tells whether a route names the path
 * @throws GatewayError bad_request_target
 */
export function locate(raw: string, isNamed: (path: string) => boolean): LocatedRequest {
  const target = parseTarget(raw)
  const { path } = target
  const known = KNOWN_PATHS.get(path)
  if (known !== undefined) return { target, classified: known }
  const azures = canonicalPath(path)
  const usual = azures ?? versionedPath(path)
  if (usual === null || isNamed(path)) return { target, classified: classifyChecked(path) }
  const query = azures === null ? target.query : canonicalQuery(target.query)
  const classified = classifyChecked(usual)
  const { endpoint: { modelIn, name }, pathModelEnd } = classified
  if (modelIn !== 'deployment' || name === 'other') return { target: { ...target, path: usual, query }, classified }
  return {
    target: { ...target, path: `/v1${usual.slice(pathModelEnd)}`, query },
    // Without a model in the path, the body must name the model.
    classified: { ...classified, pathModelStart: 0, pathModelEnd: 0 },
  }
}

function classifyChecked(path: string): Classified {
  const classified = classifyPath(path)
  checkPathEncoding(path, classified)
  return classified
}
