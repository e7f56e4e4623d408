import dns from 'node:dns'
import * as net from 'node:net'
import type { Test } from 'tap'

/** ms; the shortest time that node can give an address, and a longer stall. */
const ATTEMPT = 10
const STALL = 40
const ADDRESSES = [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }]

/**
 * A name with two addresses, at the second of which nobody listens. As each attempt begins the process
 * stalls, so that node sees its time gone by before it sees the connection that stands.
 */
export function startSlowName(t: Test): void {
  const { lookup } = dns
  const attempt = net.getDefaultAutoSelectFamilyAttemptTimeout()
  net.setDefaultAutoSelectFamilyAttemptTimeout(ATTEMPT)
  const told = (_name: string, _options: unknown, callback: (err: null, all: typeof ADDRESSES) => void) => {
    process.nextTick(() => {
      callback(null, ADDRESSES)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL)
    })
  }
  dns.lookup = told as unknown as typeof lookup
  t.teardown(() => {
    dns.lookup = lookup
    net.setDefaultAutoSelectFamilyAttemptTimeout(attempt)
  })
}
