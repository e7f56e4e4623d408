import { checkSpelling, classifyPath } from './endpoint.ts'
import type { Classified } from './endpoint.ts'
import { usualQuery } from './query.ts'
import { parseTarget } from './target.ts'
import type { RequestTarget } from './target.ts'

/** What a request asks for. */
export interface Located {
  readonly target: RequestTarget
  readonly classified: Classified
}

/** What Azure has where all others have /v1; it takes letters in any case. */
const AZURE = /^\/openai(?:\/v1)?(?=\/)/i

/**
 * Azure's paths mean those under /v1, and are routed and forwarded as these, unless a route names them: what
 * serves them as they are is known to the operator alone.
 *
 * @param raw the request's target
 * @param isNamed does a route name this path?
 * @throws GatewayError bad_request_target
 */
export function locate(raw: string, isNamed: (path: string) => boolean): Located {
  const target = parseTarget(raw)
  const prefix = AZURE.exec(target.path)?.[0]
  const located = { target, classified: classifyPath(target.path) }
  checkSpelling(target.path, located.classified)
  return prefix === undefined || isNamed(target.path) ? located : asUsual(located, prefix)
}

function asUsual({ target, classified }: Located, prefix: string): Located {
  const { endpoint: { modelIn, name }, pathModelEnd } = classified
  const isDeployed = modelIn === 'deployment' && name !== 'other'
  const path = `/v1${target.path.slice(isDeployed ? pathModelEnd : prefix.length)}`
  return {
    target: { ...target, path, query: usualQuery(target.query) },
    // The body is to name the model, as it stands in the path no more.
    classified: isDeployed ? { ...classified, pathModelStart: 0, pathModelEnd: 0 } : classifyPath(path),
  }
}
