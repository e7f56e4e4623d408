import { readFileSync } from 'node:fs'

/** Number of descriptors that are reserved for files, threads, and connections that only get an error response. */
const RESERVED = 8
/** Descriptors that are also reserved from clients, for upstream connections: a share of all, up to a maximum. */
const UPSTREAM_SHARE = 1 / 16
const MAX_FOR_UPSTREAMS = 64

/**
 * Limits of descriptor numbers. The system gives a new file the lowest free number, so a high number means that all lower numbers are in
 * use.
 */
export interface DescriptorBounds {
  /** Client connections do not get this number or a higher number. */
  readonly clients: number
  /** Upstream connections do not get this number or a higher number. */
  readonly upstreams: number
}

/** @param limit maximum number of open files; Infinity = no limit */
export function descriptorBounds(limit = descriptorLimit()): DescriptorBounds {
  const upstreams = limit - RESERVED
  return { upstreams, clients: upstreams - Math.min(MAX_FOR_UPSTREAMS, Math.floor(limit * UPSTREAM_SHARE)) }
}

/** The descriptor of a connection; -1 = it has no descriptor, or not yet. Node has no public API for it. */
export function descriptorOf(socket: object): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}

/** Maximum number of descriptors. Only Linux reports it. Infinity = unlimited or unknown. */
function descriptorLimit(): number {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return Infinity
  }
  return Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Infinity)
}
