import { readFileSync } from 'node:fs'

/** Kept free for files and threads, and for connections that are only told that there is no room. */
const RESERVED = 8
/** Kept free of clients too, for the upstreams of those that are served: a share, and the maximum. */
const UPSTREAM_SHARE = 1 / 16
const MAX_FOR_UPSTREAMS = 64

/**
 * Which descriptors connections may have. The system gives each new file the lowest number that is free, so a high
 * number says that all below it are in use.
 */
export interface DescriptorBounds {
  /** Numbers from here on are not for clients. */
  readonly clients: number
  /** Nor, from here on, for upstreams. */
  readonly upstreams: number
}

/** @param limit how many files may be open; Infinity = no bounds */
export function descriptorBounds(limit = descriptorLimit()): DescriptorBounds {
  const upstreams = limit - RESERVED
  return { upstreams, clients: upstreams - Math.min(MAX_FOR_UPSTREAMS, Math.floor(limit * UPSTREAM_SHARE)) }
}

/** The descriptor of a connection; -1 = it has none (yet). Node has no public name for it. */
export function descriptorOf(socket: object): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}

/** Only Linux tells. Infinity = unlimited, or unknown. */
function descriptorLimit(): number {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return Infinity
  }
  return Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Infinity)
}
