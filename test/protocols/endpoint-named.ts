import { classifyPath, knownEndpoints } from '../../src/protocols/classify-path.ts'
import type { Endpoint, EndpointName } from '../../src/protocols/endpoint/protocol.ts'

const BY_NAME = new Map(knownEndpoints().map(({ endpoint }) => [endpoint.name, endpoint]))
const OTHER = classifyPath('/v1/unheard-of').endpoint

/** What is not known by name is `other`. */
export function endpointNamed(name: EndpointName): Endpoint {
  return BY_NAME.get(name) ?? OTHER
}
