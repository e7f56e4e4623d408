import { messageOf } from './message-of.ts'

/**
 * The table of all errors. Each exchange ends in success or with one row of this table. docs/errors.md has the same rows (a test checks
 * this).
 */

/** Who causes the error, for the log, the ledger and alerts. */
export type ErrorSource = 'client' | 'gateway' | 'upstream'

interface ErrorRow {
  /** HTTP status, if no byte of a response has been sent. */
  readonly status: number
  readonly source: ErrorSource
  /** true if another attempt, by the gateway or the client, can succeed. */
  readonly retryable: boolean
  /** Explanation for operators, in the reference of errors. */
  readonly about: string
}

export const ERRORS = {
  bad_request_target: row(400, 'client', false, 'The request line has no path that can be routed safely.'),
  bad_header: row(400, 'client', false, 'The Host header is missing or repeated, or a header is not valid.'),
  bad_framing: row(400, 'client', false, 'The bytes on the connection are not a well-formed HTTP request.'),
  expectation_failed: row(417, 'client', false, 'The request has an Expect header that is not `100-continue`.'),
  headers_too_large: row(431, 'client', false, 'The header section is larger than the server reads.'),
  headers_timeout: row(408, 'client', true, 'The header section did not arrive in time.'),
  invalid_json: row(400, 'client', false, 'The body must be JSON and is not.'),
  empty_body: row(400, 'client', false, 'The endpoint needs a body and the request has none.'),
  wrong_content_type: row(400, 'client', false, 'The endpoint does not read this content type.'),
  wrong_content_encoding: row(400, 'client', false, 'The content-encoding is not supported, or the body is not compressed as it says.'),
  invalid_form: row(400, 'client', false, 'The multipart form cannot be read.'),
  model_required: row(400, 'client', false, 'The endpoint needs a model and the request names none.'),
  invalid_output_bound: row(400, 'client', false,
    'The key has limits of tokens or a budget, and a member that bounds the output, such as `max_tokens` or `n`, is no whole number from 0 on.'),
  attribution_required: row(400, 'client', false,
    'The request lacks a tag, or the user, that `attribution.require` names. The message says how to send it.'),
  policy_refused: row(400, 'client', false, 'A rule of the operator refused the request. The message names the rule.'),
  context_length_exceeded: row(400, 'client', false, 'The route has fit: check, and the prompt is longer than the context of every model that could be used.'),
  model_ambiguous: row(400, 'client', false, 'The request names two different models.'),
  not_translatable: row(400, 'client', false,
    "The request has something that cannot be translated to the target's protocol. The message names it."),
  translation_lossy: row(400, 'client', false,
    "The route has translate: strict, and the target's protocol has no counterpart for a field, or a capsule in it was not made by a gateway. The message names the fields."),
  body_timeout: row(408, 'client', true, 'The rest of the body did not arrive within timeouts.idle.'),
  body_too_large: row(413, 'client', false, 'The body, with what its capsules hold, is larger than server.body_limit. Or it has too many values to be translated.'),
  missing_key: row(401, 'client', false, 'The request carries no key.'),
  invalid_key: row(401, 'client', false, 'The gateway does not know the key.'),
  key_expired: row(401, 'client', false, 'The key has expired. Or the secret was replaced by a rotation, and its grace period has ended.'),
  own_credential_required: row(401, 'client', false,
    "The target is used with the client's own credential, and the request has none beside the gateway's key in `x-gateway-key`."),
  too_many_wrong_keys: row(429, 'client', false, 'Too many wrong keys came from the address of the client.'),
  key_revoked: row(401, 'client', false, 'The key was revoked or blocked while the request ran. Or the caller is blocked.'),
  token_expired: row(401, 'client', false, 'The token of the caller has expired.'),
  token_not_yet_valid: row(401, 'client', false, 'The token of the caller is not valid yet.'),
  token_signature: row(401, 'client', false,
    'The signature of the token is not valid, the issuer does not publish its key, its algorithm is not accepted, or the token has more than 16 kB.'),
  token_audience: row(401, 'client', false, 'The token is for another audience.'),
  token_issuer: row(401, 'client', false, 'No entry of callers has the issuer of the token.'),
  token_group: row(403, 'client', false, 'The caller is in no group that callers.groups maps, and there is no default.'),
  token_claims: row(403, 'client', false, 'A claim of the token is missing or does not match callers.require, or it does not name the caller.'),
  model_not_allowed: row(403, 'client', false,
    'The key may not use the model. Or it is limited to some models and the request names none.'),
  model_unpriced: row(403, 'client', false, 'The key or its group has a budget, and the cost of the request cannot be known: the model has no price, or the request is a batch or on a path that is not priced.'),
  unknown_path: row(404, 'client', false, 'No route serves the path. Or it is served only for requests that name a model.'),
  model_not_found: row(404, 'client', false, 'No route serves the model on this path.'),
  method_not_allowed: row(405, 'client', false, 'The path does not allow this method.'),
  upgrade_required: row(426, 'client', false, 'No upstream accepts the WebSocket. Use plain HTTP; only /v1/realtime needs a WebSocket.'),
  rate_limited: row(429, 'client', true, 'The key is over a limit of requests, tokens or concurrency.'),
  budget_spent: row(429, 'client', false, 'The key has spent its budget.'),
  client_gone: row(499, 'client', false, 'The client disconnected before the response was complete.'),
  client_stalled: row(504, 'client', false, 'The client read nothing of the response within timeouts.idle.'),
  internal: row(500, 'gateway', false, 'An error in the gateway itself. Report it with the request id.'),
  limits_unavailable: row(
    503, 'gateway', true,
    'Valkey cannot be reached, so the limits of the key cannot be checked: `cluster.limits_offline` is `refuse`, or the request may cost ' +
    'more than this gateway may spend on its own.',
  ),
  policy_unavailable: row(503, 'gateway', true, 'A hook with `when_down: refuse` did not decide about the request. The log has the reason.'),
  token_keys_unavailable: row(503, 'gateway', true, 'The keys of the issuer cannot be read, and none that were read before can still be used.'),
  overloaded: row(503, 'gateway', true, 'The gateway has reached server.max_*, server.body_memory or its limit of open files.'),
  draining: row(503, 'gateway', true, 'The gateway is shutting down.'),
  upstream_unreachable: row(502, 'upstream', true, 'The gateway could not connect to the upstream.'),
  upstream_reset: row(502, 'upstream', true, 'The upstream closed the connection before it responded.'),
  upstream_invalid: row(502, 'upstream', true, 'The upstream sent something that is not a valid response.'),
  upstream_rejected_key: row(502, 'upstream', false, "The upstream refused the operator's credential."),
  credential_unavailable: row(502, 'upstream', true,
    "The gateway could not get the operator's credential for the upstream. The log has the reason."),
  upstream_rate_limited: row(429, 'upstream', true,
    'The upstream is at its limits: at `upstreams.NAME.limits`, or with every credential at its rate limit. Wait for the time in retry-after.'),
  upstream_cut: row(502, 'upstream', true, 'The upstream ended the response before it was complete.'),
  answer_too_large: row(502, 'gateway', false,
    'The response is larger than the 32 MB that the gateway can hold: a translated response that is not a stream, or a route with resume: hold.'),
  connect_timeout: row(504, 'upstream', true, 'No connection to the upstream within timeouts.connect.'),
  first_byte_timeout: row(504, 'upstream', true, 'No byte of a response within timeouts.first_byte.'),
  idle_timeout: row(504, 'upstream', true, 'The upstream sent nothing more within timeouts.idle.'),
  total_timeout: row(504, 'gateway', false, 'The request took longer than timeouts.total.'),
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

interface ErrorDetail {
  readonly headers?: Readonly<Record<string, string>>
  /** The field of the request that is wrong, if the protocol's error can name a field. */
  readonly param?: string
  /** For the operator, not for the client. Never contains a credential. */
  readonly cause?: unknown
}

/** The only error class. The client gets `message`, which says what to change. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly headers: Readonly<Record<string, string>>
  readonly param: string | null

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.headers = detail.headers ?? {}
    this.param = detail.param ?? null
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  get source(): ErrorSource {
    return ERRORS[this.code].source
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable
  }
}

export function overloaded(message: string, cause?: Error): GatewayError {
  return new GatewayError('overloaded', message, { headers: { 'retry-after': '1' }, ...cause && { cause } })
}

/** The upstream refused the operator's credential with this status. A retry cannot help. */
export function credentialRejected(status: number): GatewayError {
  return new GatewayError(
    'upstream_rejected_key',
    `the upstream refused the credential of the gateway with ${status}; the operator must replace it`,
    { headers: { 'x-should-retry': 'false' } },
  )
}

/** @param reason for the operator; must contain no secret, and no text from a source that can contain a secret */
export function credentialUnavailable(reason: string): GatewayError {
  return new GatewayError('credential_unavailable', 'the gateway has no valid credential for the upstream', { cause: new Error(reason) })
}

/** @param retryAfterMs ms until the upstream accepts requests again */
export function upstreamRateLimited(retryAfterMs: number): GatewayError {
  return new GatewayError('upstream_rate_limited', 'the upstream is at its rate limit for now', {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) },
  })
}

export function upgradeRequired(message = 'this path does not support WebSockets; use plain HTTP'): GatewayError {
  return new GatewayError('upgrade_required', message, { headers: { upgrade: 'websocket' } })
}

const NO_DESCRIPTOR_CODES = new Set<unknown>(['EMFILE', 'ENFILE'])

export function noDescriptor(cause?: Error): GatewayError {
  return overloaded('the gateway has no file descriptor left; the operator can raise the limit (ulimit -n)', cause)
}

/** @returns null = the error is something else than a lack of descriptors in the process or the machine */
export function descriptorShortage(error: unknown): GatewayError | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return NO_DESCRIPTOR_CODES.has(error.code) ? noDescriptor(error) : null
}

/** Converts any thrown value, so that every exchange ends with a row of the table. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  // Check for a lack of descriptors here too: a module that is loaded at first use can throw such an error.
  return descriptorShortage(thrown)
    ?? new GatewayError('internal', 'internal error of the gateway; report it with the request id', { cause: thrown })
}

function row(status: number, source: ErrorSource, retryable: boolean, about: string): ErrorRow {
  return { status, source, retryable, about }
}

const NO_JSON = 'the text is not valid JSON'

/** The cause of an error for the log: a code and a sentence. Errors of the gateway itself have a stack instead. */
export function causeOf({ code: own, cause }: GatewayError): string | undefined {
  if (!(cause instanceof Error)) return undefined
  // Remove the message: JSON.parse quotes the text, which can be from a client or a model.
  if (cause instanceof SyntaxError) return own === 'internal' ? cause.stack?.replace(cause.message, NO_JSON) : NO_JSON
  if (own === 'internal') return cause.stack
  const { code } = cause as Error & { readonly code?: string }
  const message = messageOf(cause)
  return code === undefined ? message : `${code}: ${message}`
}
