/** The response of an endpoint, before behaviours change it. */
export type SimulatedResponse = CompleteResponse | EventStream

/** A body that is known at once. */
export interface CompleteResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** A response that comes in events, which are generated as they are sent: unread events cost nothing. */
export interface EventStream {
  readonly headers: Readonly<Record<string, string>>
  /** The events are server-sent ones: line ends and comments can be played with. */
  readonly sse: boolean
  /** All strings, or all buffers. Server-sent events include their blank line. */
  readonly events: Iterable<string | Buffer>
  /** The event that marks the end in this protocol; null = only the framing does. */
  readonly last: (() => string) | null
  /** The event by which this protocol reports a failure in mid-stream; null where it has none. */
  readonly error: (() => string) | null
}

const JSON_HEADERS = Object.freeze({ 'content-type': 'application/json' })
const SSE_HEADERS = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
})

/** A JSON response, by default with status 200. */
export function json(value: unknown, status = 200, headers?: Readonly<Record<string, string>>): CompleteResponse {
  return {
    status,
    headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers },
    body: JSON.stringify(value),
  }
}

/** A response in any other content type, with status 200. */
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
