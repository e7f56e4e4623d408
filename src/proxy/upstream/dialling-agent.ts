import { Agent, type ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Connector } from './connector.ts'

type Dialled = (error: Error | null, connection: Duplex) => void

/** Lets node's own client connect by the upstream's `Connector`. Keeps no connections for later requests. */
export class DiallingAgent extends Agent {
  /** Node's client refuses an agent whose protocol differs from the request's. */
  readonly protocol: string
  readonly defaultPort: number
  readonly #connect: Connector

  constructor(protocol: string, connect: Connector) {
    super()
    this.protocol = protocol
    this.defaultPort = protocol === 'https:' ? 443 : 80
    this.#connect = connect
  }

  /** Calls back when the TCP connection and the TLS handshake are complete. */
  override createConnection({ hostname, host, port }: ClientRequestArgs, dialled: Dialled): undefined {
    const name = hostname ?? host ?? 'localhost'
    const place = { protocol: this.protocol, hostname: name.replace(/^\[(.*)\]$/, '$1'), host: name, port: String(port) }
    this.#connect(place, (error, socket) => dialled(error, socket as Duplex))
  }
}
