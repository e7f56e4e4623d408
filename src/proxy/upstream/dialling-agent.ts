import { Agent, type ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Connector } from './connector.ts'

type Dialled = (error: Error | null, connection: Duplex) => void

/** Connects node's own client as undici connects; keeps no connection for later requests. */
export class DiallingAgent extends Agent {
  /** Node's client refuses an agent for another protocol. */
  readonly protocol: string
  readonly defaultPort: number
  readonly #connect: Connector

  constructor(protocol: string, connect: Connector) {
    super()
    this.protocol = protocol
    this.defaultPort = protocol === 'https:' ? 443 : 80
    this.#connect = connect
  }

  /** Passes on a connection that is established, including its TLS handshake. */
  override createConnection({ hostname, port }: ClientRequestArgs, dialled: Dialled): undefined {
    const name = hostname ?? 'localhost'
    const place = { protocol: this.protocol, hostname: name.replace(/^\[(.*)\]$/, '$1'), host: name, port: String(port) }
    this.#connect(place, (error, socket) => dialled(error, socket as Duplex))
  }
}
