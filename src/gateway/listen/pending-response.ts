import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The unfinished response of a connection; null = none. Node has no public API for it. */
export function pendingResponse(socket: Duplex): ServerResponse | null {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? null
}
