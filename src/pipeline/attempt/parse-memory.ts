import { GatewayError, overloaded } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import { MAX_OBJECT_BYTES, objectBytes } from '../../base/json-size.ts'

/**
 * Checks that the request's body can be parsed into objects. They are freed when the request is written, before
 * anything else reserves memory, so nothing has to stay reserved for them.
 *
 * @throws GatewayError body_too_large if they can never fit, overloaded if they do not fit now
 */
export function checkParseMemory({ config: { server }, sharedState: { bodyMemory } }: Gateway, { request: { body } }: Exchange): void {
  if (!body?.json) return
  const { size, length } = body.json
  const bytes = objectBytes(size)
  if (bytes > Math.min(MAX_OBJECT_BYTES, server.bodyMemory)) {
    throw new GatewayError(
      'body_too_large', `the request has too many values to be translated: ${size.containers} objects and lists, `
      + `${size.members} members, ${size.values} values`,
    )
  }
  if (!bodyMemory.hasRoom(bytes + length, server.bodyMemory)) {
    throw overloaded('the bodies of running requests leave too little of server.body_memory to translate the request')
  }
}
