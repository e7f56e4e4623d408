import { reachableOrigin } from '../../reach.ts'
import type { PageLocation } from '../../reach.ts'

/**
 * Where clients send what the playground sends.
 *
 * @param configuredUrl - where the gateway listens, as its configuration has it; null = nobody knows
 * @param here - the console's own address, which takes the same requests
 * @returns without a slash at its end
 */
export function baseUrlFor(configuredUrl: string | null, here: PageLocation): string {
  return reachableOrigin(configuredUrl, here) ?? here.origin
}
