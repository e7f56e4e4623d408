import { CHAT } from './chat/index.ts'
import { CHAT_OTHER } from './chat/paths.ts'
import { PROTOCOLS } from './index.ts'
import { RESPONSES } from './responses/index.ts'
import { READ, defineEndpoint, withoutPathModel } from './endpoint/classified.ts'
import type { Classified, Endpoint, KnownPath } from './endpoint/protocol.ts'

const STATUS: KnownPath = ['/api/status', defineEndpoint({
  name: 'status', format: CHAT_OTHER.format, methods: READ, body: 'none', modelIn: 'none', ownResponse: 'status',
})]

/** Endpoints that are known by their whole path. */
export const KNOWN_PATHS: ReadonlyMap<string, Classified> = new Map(
  [...PROTOCOLS.flatMap(protocol => protocol.paths), STATUS]
    .map(([path, endpoint]) => [path, withoutPathModel(endpoint)]),
)

/** Is it one of OpenAI's endpoints, which other providers serve at their own paths? */
export function isOpenai({ protocol }: Endpoint): boolean {
  return protocol === CHAT.name || protocol === RESPONSES.name
}
