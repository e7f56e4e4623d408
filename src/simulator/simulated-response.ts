/** The response of an endpoint, before behaviours change it. */
export type SimulatedResponse = CompleteResponse | EventStream

/** A response whose body is complete. */
export interface CompleteResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** A response in events. Each event is created when it is sent, so events that nobody reads cost nothing. */
export interface EventStream {
  readonly headers: Readonly<Record<string, string>>
  /** true if the events are server-sent events, to which `crlf` and `comments` apply. */
  readonly sse: boolean
  /** The events are all strings or all buffers. A server-sent event includes its blank line. */
  readonly events: Iterable<string | Buffer>
  /** The event that ends a response in this protocol; null = the protocol has no such event. */
  readonly last: (() => string) | null
  /** The event that reports a failure in the middle of a stream; null = the protocol has no such event. */
  readonly error: (() => string) | null
}

const JSON_HEADERS = Object.freeze({ 'content-type': 'application/json' })
const SSE_HEADERS = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
})

/** A JSON response. The default status is 200. */
export function json(value: unknown, status = 200, headers?: Readonly<Record<string, string>>): CompleteResponse {
  return {
    status,
    headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers },
    body: JSON.stringify(value),
  }
}

/** A response with any content type and status 200. */
export function responseOf(contentType: string, body: string | Buffer): CompleteResponse {
  return { status: 200, headers: { 'content-type': contentType }, body }
}

/** A stream of server-sent events. */
export function sse(
  events: Iterable<string>,
  last: (() => string) | null,
  error: () => string,
): EventStream {
  return { headers: SSE_HEADERS, sse: true, events, last, error }
}
