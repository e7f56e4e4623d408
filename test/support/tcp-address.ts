import * as net from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface TcpAddress {
  readonly port: number
  /** Leads new connections to this port; open connections are not changed. */
  leadTo(port: number): void
}

/** An address whose target port can change, like a name whose DNS record changes. */
export async function startTcpAddress(t: Test, port: number): Promise<TcpAddress> {
  let target = port
  const sockets = new Set<net.Socket>()
  const server = net.createServer(client => {
    const upstream = net.connect(target, '127.0.0.1')
    for (const [from, to] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: to => {
      target = to
    },
  }
}
