import type { ReserveMemory } from '../../base/memory-reservation.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'

/** The memory for what is kept of an exchange's responses until the exchange ends. */
export function responseMemoryFor({ config, sharedState: { bodyMemory } }: Gateway, exchange: Exchange): ReserveMemory {
  return bytes => {
    if (bytes < 0) bodyMemory.releaseForResponse(-bytes)
    else if (!bodyMemory.reserveForResponse(bytes, config.server.bodyMemory)) return false
    exchange.responseBytesHeld += bytes
    return true
  }
}

/**
 * Reserves memory for a response that is held. What is not released is when the exchange ends.
 *
 * @returns false where there is not so much left
 */
export function reserveHeldMemory({ config, sharedState }: Gateway, exchange: Exchange, bytes: number): boolean {
  if (!sharedState.bodyMemory.reserve(bytes, config.server.bodyMemory)) return false
  exchange.bytesHeld += bytes
  return true
}

/** Releases memory that `reserveHeldMemory` reserved. */
export function releaseHeldMemory({ sharedState }: Gateway, exchange: Exchange, bytes: number): void {
  sharedState.bodyMemory.release(bytes)
  exchange.bytesHeld -= bytes
}
