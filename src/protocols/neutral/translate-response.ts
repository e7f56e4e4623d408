import { collectResponse } from './collect.ts'
import { FreeformUnwrapper } from './freeform.ts'
import type { JsonObject } from './json.ts'
import type { NeutralError, ResponseEvent } from './response.ts'
import type { ClientContext, ClientSide, ResponseReader, ResponseWriter, UpstreamSide } from './translation.ts'

/** Translates one streamed response. */
export class StreamTranslator {
  readonly #reader: ResponseReader
  readonly #writer: ResponseWriter
  readonly #unwrapper: FreeformUnwrapper
  readonly #events: ResponseEvent[] = []
  #isOver = false

  constructor(client: ClientSide, upstream: UpstreamSide, context: ClientContext, provider: string) {
    this.#reader = upstream.createReader(provider)
    this.#writer = client.createWriter(context)
    this.#unwrapper = new FreeformUnwrapper(context.request)
  }

  /** The client has got the end of its protocol, or an error: nothing follows. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * @param name of the event, '' where it has none
   * @param value its data as parsed JSON; undefined = it is none
   * @returns what the client gets: whole events, or ''
   */
  event(name: string, value: unknown): string {
    this.#reader.event(name, value, this.#events)
    return this.#write()
  }

  /** The stream has ended, and nothing is missing. */
  end(): string {
    this.#events.push({ type: 'end' })
    return this.#write()
  }

  #write(): string {
    let text = ''
    for (const read of this.#events) {
      if (this.#isOver) break
      for (const event of this.#unwrapper.next(read)) text += this.#writer.write(event)
      this.#isOver = read.type === 'end' || read.type === 'error'
    }
    this.#events.length = 0
    return text
  }
}

/** Translates a whole response. @returns the error, where the upstream says so with a status of success */
export function translateBody(
  client: ClientSide, upstream: UpstreamSide, body: JsonObject, context: ClientContext, provider: string,
): JsonObject | { readonly error: NeutralError } {
  const read: ResponseEvent[] = []
  upstream.createReader(provider).body(body, read)
  const unwrapper = new FreeformUnwrapper(context.request)
  const response = collectResponse(read.flatMap(event => unwrapper.next(event)))
  return 'kind' in response ? { error: response } : client.writeBody(response, context)
}
