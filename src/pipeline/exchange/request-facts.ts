import { isoTime } from '../../base/clock.ts'
import type { RequestFacts } from '../../policy/hooks/hook-call.ts'
import type { Exchange } from './exchange.ts'

/** What hooks learn of a request. */
export function requestFacts({ id, startedWall, classified: { endpoint }, req, target, request, identity, attributed }: Exchange): RequestFacts {
  return {
    id, at: isoTime(startedWall), protocol: endpoint.protocol, endpoint: endpoint.name, method: req.method ?? '', path: target.path,
    model: request.model, stream: request.stream, key: identity.key?.name ?? null, group: identity.key?.group ?? null,
    user: attributed?.user ?? null, tags: attributed?.tags ?? {},
  }
}
