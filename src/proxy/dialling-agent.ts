import { Agent } from 'node:http'
import type { ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Connector } from './connector.ts'

type Dialled = (error: Error | null, connection: Duplex) => void

/** Makes the connections of node's own client as those of undici are made. It keeps none for later. */
export class DiallingAgent extends Agent {
  /** Node's client refuses an agent that is for another. */
  readonly protocol: string
  readonly defaultPort: number
  readonly #connect: Connector

  /** @param protocol `http:` or `https:` */
  constructor(protocol: string, connect: Connector) {
    super()
    this.protocol = protocol
    this.defaultPort = protocol === 'https:' ? 443 : 80
    this.#connect = connect
  }

  /** The connection that is passed on stands, its TLS handshake done. */
  override createConnection({ hostname, port }: ClientRequestArgs, dialled: Dialled): undefined {
    const name = hostname ?? 'localhost'
    const place = {
      protocol: this.protocol, hostname: name.replace(/^\[(.*)\]$/, '$1'), host: name, port: String(port),
    }
    this.#connect(place, (error, socket) => dialled(error, socket as Duplex))
  }
}
