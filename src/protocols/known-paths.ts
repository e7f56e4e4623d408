import { PROTOCOLS } from './index.ts'
import { READ, defineEndpoint, otherEndpoint, withoutPathModel } from './endpoint/classified.ts'
import type { Classified, KnownPath, Protocol } from './endpoint/protocol.ts'

/** The protocol of paths that no protocol recognises. */
export const DEFAULT_PROTOCOL = PROTOCOLS[0] as Protocol

const { format } = DEFAULT_PROTOCOL

/** The endpoint of unknown paths. Errors are in the format that the caller's headers choose, or in the default format. */
export const OTHER = withoutPathModel(otherEndpoint(format, { formatByCaller: true }))

export const STATUS: KnownPath = ['/api/status', defineEndpoint({
  name: 'status', format, methods: READ, body: 'none', modelIn: 'none', ownResponse: 'status',
})]

export const KNOWN_PATHS: ReadonlyMap<string, Classified> = new Map(
  [...PROTOCOLS.flatMap(protocol => protocol.paths), STATUS]
    .map(([path, endpoint]) => [path, withoutPathModel(endpoint)]),
)
