import { readFileSync } from 'node:fs'

/** Kept free for files, threads, and connections that only get an error response. */
const RESERVED = 8
/** Also kept free of clients, for upstream connections: a share, and the maximum. */
const UPSTREAM_SHARE = 1 / 16
const MAX_FOR_UPSTREAMS = 64

/** Bounds of descriptors. The system gives a new file the lowest free number: a high number means that all lower ones are in use. */
export interface DescriptorBounds {
  /** Clients do not get this number or a higher one. */
  readonly clients: number
  /** Upstreams do not get this number or a higher one. */
  readonly upstreams: number
}

/** @param limit maximum number of open files; Infinity = no limit */
export function descriptorBounds(limit = descriptorLimit()): DescriptorBounds {
  const upstreams = limit - RESERVED
  return { upstreams, clients: upstreams - Math.min(MAX_FOR_UPSTREAMS, Math.floor(limit * UPSTREAM_SHARE)) }
}

/** The descriptor of a connection; -1 = it has none (yet). Node has no public name for it. */
export function descriptorOf(socket: object): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}

/** Known only on Linux. Infinity = unlimited or unknown. */
function descriptorLimit(): number {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return Infinity
  }
  return Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Infinity)
}
