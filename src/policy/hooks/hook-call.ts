import type { HookConfig } from '../../config/hook-types.ts'
import { withoutCredentials } from './body-credentials.ts'
import { requestTexts, textOf, type RequestText } from '../../protocols/request/request-texts.ts'

/** Bytes of a call at most. A larger one is a failure of the hook, so `when_down` decides. */
export const MAX_CALL_BYTES = 4 * 1024 * 1024

/** What a hook learns of every request. No credential, no header, no query: a query can have a key. */
export interface RequestFacts {
  readonly id: string
  /** When the request began, ISO 8601. */
  readonly at: string
  readonly protocol: string
  readonly endpoint: string
  readonly method: string
  readonly path: string
  readonly model: string | null
  readonly stream: boolean
  /** The name of the key, or of the caller; null = the request has none. */
  readonly key: string | null
  readonly group: string | null
  readonly user: string | null
  readonly tags: Readonly<Record<string, string>>
}

/** What a hook learns of a response. */
export interface ResponseFacts {
  /** The HTTP status of the response; null = it did not begin. */
  readonly status: number | null
  /** Only for taps, which get the whole response: `complete`, or why it ended; null = it has not ended. */
  readonly end: string | null
  /** Tokens, as far as they are known. */
  readonly usage: { readonly input_tokens: number | null, readonly output_tokens: number | null } | null
}

/** A text of a request or of a response. */
export interface HookText {
  /** Unique in the call. The reply names texts by it. */
  readonly id: string
  readonly role: string
  /** `text`, `tool_arguments`, `tool_result` or `document`. */
  readonly kind: string
  readonly text: string
}

export interface HookContent {
  /** null = the gateway cannot read the body. Read only with `send: text`. */
  readonly texts: readonly HookText[] | null
  /** The JSON body; null = it is no JSON. Read only with `send: body`. */
  readonly body: Buffer | null
}

/** The JSON of a call, as docs/public/hook.schema.json describes it. */
export function callBody(
  { name, tap, send }: HookConfig, request: RequestFacts, response: ResponseFacts | null, { texts, body }: HookContent,
): Buffer {
  const head = {
    version: 1, hook: name, on: response === null ? 'request' : 'response', tap, request,
    ...response !== null && { response },
    ...send === 'text' && { texts },
  }
  const json = JSON.stringify(head)
  if (send !== 'body') return Buffer.from(json)
  // The body stands in the call as it was received: it is not parsed and written again.
  return Buffer.concat([Buffer.from(`${json.slice(0, -1)},"body":`), body === null ? Buffer.from('null') : withoutCredentials(body), Buffer.from('}')])
}

/**
 * What a hook with this configuration gets of a request's body.
 * @param body JSON; null = the body is not JSON @param limit bytes of the body, or of its texts @returns null = it has more
 */
export function contentFor(
  { send }: HookConfig, body: Buffer | null, limit = MAX_CALL_BYTES,
): HookContent & { readonly places: readonly RequestText[] | null } | null {
  if (send === 'metadata' || body === null) return { texts: null, places: null, body: null }
  if (send === 'body') return body.length > limit ? null : { texts: null, places: null, body }
  const places = requestTexts(body)
  if (places === null || places.reduce((sum, { start, end }) => sum + end - start, 0) > limit) return null
  return { places, body: null, texts: places.map(place => ({ id: place.id, role: place.role, kind: place.kind, text: textOf(body, place) })) }
}
