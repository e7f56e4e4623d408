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
  const { path } = target
  const prefix = AZURE.exec(path)?.[0]
  const classified = classifyPath(path)
  if (prefix === undefined || isNamed(path)) return checked({ target, classified })
  const query = usualQuery(target.query)
  const { endpoint: { modelIn, name }, pathModelEnd } = classified
  if (modelIn === 'deployment' && name !== 'other') {
    checkSpelling(path, classified)
    return {
      target: { ...target, path: `/v1${path.slice(pathModelEnd)}`, query },
      // The body is to name the model, as it stands in the path no more.
      classified: { ...classified, pathModelStart: 0, pathModelEnd: 0 },
    }
  }
  const usual = `/v1${path.slice(prefix.length)}`
  return checked({ target: { ...target, path: usual, query }, classified: classifyPath(usual) })
}

function checked(located: Located): Located {
  checkSpelling(located.target.path, located.classified)
  return located
}
