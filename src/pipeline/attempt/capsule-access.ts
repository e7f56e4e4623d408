import { GatewayError } from '../../base/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { CapsuleAccess } from '../../protocols/neutral/capsule.ts'

/**
 * The capsules of one request to an upstream. The body and the contents of its capsules together are limited by
 * `server.body_limit`.
 *
 * @param reserveMemory takes bytes from `server.body_memory`, and throws if there are not enough
 */
export function capsuleAccess(
  { config: { server: { bodyLimit } }, sharedState: { capsuleKeys } }: Gateway, { request: { body } }: Exchange,
  reserveMemory: (bytes: number) => void,
): CapsuleAccess {
  let left = bodyLimit - (body?.bytes.length ?? 0)
  return {
    keys: capsuleKeys.keys,
    reserve: bytes => {
      left -= bytes
      if (left < 0) throw new GatewayError('body_too_large', 'the body, with the thinking that its ids and signatures carry, is larger than server.body_limit')
      reserveMemory(bytes)
    },
  }
}
