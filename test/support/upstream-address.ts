import type { Upstream } from '../../src/config/types.ts'
import { headerRules } from '../../src/proxy/upstream/headers.ts'
import type { OutgoingRequest, Transport, UpstreamAddress } from '../../src/proxy/upstream/transport.ts'

/** An upstream without a credential, and without headers of its own. */
export const PLAIN_UPSTREAM: Upstream = {
  name: 'up', url: null, provider: null, models: new Map(), simulator: false, auth: null, headers: {}, websocket: false,
  versionHeader: 'anthropic-version', usage: 'ask', speaks: null, ca: null, proxy: null, tls: null, connectionAge: Infinity, limits: null, health: null, v1: null,
}

/** @param prefix path of the upstream's url */
export function addressOf(origin: string, transport: Transport, prefix = ''): UpstreamAddress {
  const url = new URL(origin + prefix)
  return { url, host: url.host, prefix, headerRules: headerRules(PLAIN_UPSTREAM), transport }
}

/** A request of a client that sends these headers. */
export function requestWith(raw: readonly string[] = [], request: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return { method: 'GET', path: '/x', headers: [], body: null, source: { raw, requestId: 'id-1' }, ...request }
}
