import type { ReserveMemory } from '../../base/memory-reservation.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'

/** The memory for what is kept of an exchange's answers: all that is taken comes back with its end. */
export function responseMemoryFor({ config, sharedState: { bodyMemory: bodies } }: Gateway, exchange: Exchange): ReserveMemory {
  return bytes => {
    if (bytes < 0) bodies.releaseForResponse(-bytes)
    else if (!bodies.reserveForResponse(bytes, config.server.bodyMemory)) return false
    exchange.responseBytesHeld += bytes
    return true
  }
}
