import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'

export interface TcpProxy {
  readonly port: number
  /** Closes every connection and refuses others, until `heal`. */
  cut(): void
  /** Forwards nothing in either direction, and keeps all connections open, until `heal`. */
  silence(): void
  /** As `silence`, only for the open connections, as if a firewall had forgotten them. New connections work. */
  freeze(): void
  /** Forwards all data `ms` later. */
  delay(ms: number): void
  /** Resolves at the next connection. */
  connected(): Promise<void>
  heal(): void
}

/** A connection to a server that can be cut, slow or silent. */
export async function startTcpProxy(t: Test, target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const frozen = new WeakSet<Socket>()
  let fault: 'cut' | 'silent' | null = null
  let ms = 0
  let onConnection = Promise.withResolvers<void>()
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('data', chunk => {
      if (fault === 'silent' || frozen.has(from)) return
      if (ms === 0) to.write(chunk)
      else setTimeout(() => to.write(chunk), ms)
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      sockets.delete(from)
      if (fault !== 'silent' && !frozen.has(from)) to.destroy()
    })
  }
  const server = createServer(client => {
    if (fault === 'cut') return void client.destroy()
    const upstream = connect(target, '127.0.0.1')
    pass(client, upstream)
    pass(upstream, client)
    onConnection.resolve()
    onConnection = Promise.withResolvers()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    server.close()
    closeAll()
  })
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      fault = 'cut'
      closeAll()
    },
    silence: () => {
      fault = 'silent'
    },
    freeze: () => {
      for (const socket of sockets) frozen.add(socket)
    },
    delay: later => {
      ms = later
    },
    connected: () => onConnection.promise,
    heal: () => {
      const wasSilent = fault === 'silent'
      fault = null
      ms = 0
      // Dropped data is lost, so the connections from the silence are closed.
      if (wasSilent) closeAll()
    },
  }
}
