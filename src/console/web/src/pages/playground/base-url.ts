import { reachable } from '../../reach.ts'
import type { Here } from '../../reach.ts'

/**
 * Where clients send what the playground sends.
 *
 * @param told - where the gateway listens, as its configuration has it; null = nobody knows
 * @param here - the console's own address, which takes the same requests
 * @returns without a slash at its end
 */
export function baseUrlFor(told: string | null, here: Here): string {
  return reachable(told, here) ?? here.origin
}
