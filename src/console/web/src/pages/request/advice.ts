import type { ErrorCode } from '../../../../../base/errors.ts'
import type { Row } from '../../../../api/logs.ts'

/** What to do after a failed request, and who can do it. */
export interface Advice {
  readonly who: 'client' | 'operator'
  readonly text: string
}

/** @returns what to do about the end of a request; null = nothing is wrong */
export function adviceFor({ end, error }: Pick<Row, 'end' | 'error'>): Advice | null {
  if (error !== null && Object.hasOwn(ADVICE, error)) return ADVICE[error as ErrorCode]
  switch (end) {
    case 'complete':
      return null
    case 'client_gone':
      return ADVICE.client_gone
    case 'upstream_cut':
      return ADVICE.upstream_cut
    case 'timeout':
      return operator(
        'Compare the timeline with the timeouts of the route. Raise the timeout that is too short.',
      )
    case 'refused':
      return client('Correct what the cause names, then send the request again.')
    case 'interrupted':
      return client('Send the request again. The gateway log says why the process ended.')
    case 'error':
      return client('The client received the error of the upstream unchanged. Its message says what to change.')
  }
}

const SEND_AGAIN = 'Send the request again; the client SDKs retry automatically.'
const WHERE_KEYS_ARE = 'on the Keys page, or in gateway.yaml if the key is defined there'
const SECOND_TARGET = 'If this happens often, add a second target to the route, so that requests fail over.'

const ADVICE: Readonly<Record<ErrorCode, Advice>> = {
  bad_request_target: client(
    'Correct the path: use an absolute path without dot segments or unusual escapes.',
  ),
  bad_header: client('Remove or correct the header that the error message names.'),
  bad_framing: client(
    'Check the proxy or client library between client and gateway: it sends invalid HTTP framing.',
  ),
  expectation_failed: client('Remove the Expect header, or send Expect: 100-continue.'),
  headers_too_large: client('Send smaller headers. Large cookies or tracing headers are the usual cause.'),
  headers_timeout: client('The connection is too slow or was idle. Send the request on a new connection.'),
  invalid_json: client('Correct the body: it is not valid JSON. The error message names the position.'),
  empty_body: client('Send a body: this endpoint requires one.'),
  wrong_content_type: client('Set the content type that the error message names.'),
  wrong_content_encoding: client('Send the body uncompressed, or compressed with gzip, br or zstd.'),
  invalid_form: client(
    'Correct the multipart form. A boundary missing from the content type is the usual cause.',
  ),
  model_required: client('Set a model in the request.'),
  invalid_output_bound: client('Send the member that the error message names as a whole number, such as 1000.'),
  attribution_required: client('Send the tag or user that the error message names, as it says.'),
  policy_refused: client('Change what the error message says. The rule that it names is the operator\'s.'),
  model_ambiguous: client('Set the same model in path, query and body, or set it only once.'),
  not_translatable: client(
    'Change what the error message names, or use a model whose upstream speaks the protocol of the client.',
  ),
  translation_lossy: client(
    'Leave out the fields that the error message names. The operator can set translate: lenient to have them left out.',
  ),
  context_length_exceeded: operator(
    'Make the conversation shorter, or add a target whose model has a larger context. models.NAME.context corrects the figure.',
  ),
  body_timeout: client('The client paused too long while sending the body. Check its connection.'),
  body_too_large: operator('Send a smaller body, or raise server.body_limit.'),
  missing_key: client(
    'Send the API key in one of these headers: Authorization: Bearer, x-api-key, x-goog-api-key, api-key.',
  ),
  invalid_key: client('Check the API key: it is mistyped, revoked, or belongs to another gateway.'),
  key_expired: client('Use the new secret of the key, or ask the operator for one: this one has expired.'),
  own_credential_required: client(
    "Send the gateway's key in x-gateway-key, and your own credential for the provider in authorization, x-api-key, api-key or x-goog-api-key.",
  ),
  too_many_wrong_keys: client(
    'Stop the client at this address that repeats a wrong API key. API keys of 16 characters or more work meanwhile.',
  ),
  key_revoked: client(
    'Use another API key: this one was revoked or blocked, and its running requests were stopped.',
  ),
  token_expired: client('Get a new token from the issuer. Most libraries do so before the old one expires.'),
  token_not_yet_valid: client('Check the clocks of the issuer and of the gateway: they differ by more than 30 s.'),
  token_signature: client('Check that the token is complete, signed by the issuer with a public key algorithm, and at most 16 kB long.'),
  token_audience: operator('Request a token for the audience of the gateway, or add the audience of the token to callers[].audience.'),
  token_issuer: operator('Use a token of a known issuer, or add the issuer to callers. It must match the claim iss to the letter.'),
  token_group: operator('Add the caller to a group that callers[].groups.map names, or set a default group.'),
  token_claims: operator('Compare the claims of the token with callers[].require and callers[].caller. The log names the claim.'),
  model_not_allowed: operator(
    `Use a model that the key allows, or allow this model ${WHERE_KEYS_ARE}.`,
  ),
  model_unpriced: operator(
    'Add a price for the model under models in gateway.yaml. A key with a budget cannot use unpriced models.',
  ),
  unknown_path: client('Check the base URL. A missing or doubled /v1 is the usual cause.'),
  model_not_found: operator(
    'Check the spelling of the model, or add a route for it. Explain a request on the Routes page shows why ' +
      'no route matches.',
  ),
  method_not_allowed: client('Use a method that the allow response header names.'),
  upgrade_required: client('Nothing: after this response, clients use plain HTTP instead.'),
  rate_limited: operator(
    `Wait for the time in retry-after and send fewer requests, or raise the limit ${WHERE_KEYS_ARE}.`,
  ),
  budget_spent: operator(`Wait for the next budget period, or raise the budget ${WHERE_KEYS_ARE}.`),
  client_gone: client(
    'If the client did not intend to disconnect, raise its timeout. Tokens generated until then are billed.',
  ),
  client_stalled: client('The client stopped reading the response. Check what it does while streaming.'),
  internal: operator('Search the gateway log for the request ID and report the error.'),
  policy_unavailable: operator(`${SEND_AGAIN} Check that the gateway reaches the hook that the error message names.`),
  limits_unavailable: operator(`${SEND_AGAIN} Check that the gateway reaches cluster.valkey.`),
  token_keys_unavailable: operator('Check that the gateway can reach the issuer. The log has the reason.'),
  overloaded: operator(`${SEND_AGAIN} If this happens often, raise server.max_* or add workers.`),
  draining: client(`The gateway was shutting down. ${SEND_AGAIN}`),
  upstream_unreachable: operator(
    `Check the upstream's url, its DNS name and the network in between. ${SECOND_TARGET}`,
  ),
  upstream_reset: operator(`${SEND_AGAIN} ${SECOND_TARGET}`),
  upstream_invalid: operator('Check that the url of the upstream points to the provider.'),
  upstream_rejected_key: operator(
    'The provider rejects the credential in gateway.yaml. Replace it under auth of the upstream, then reload.',
  ),
  credential_unavailable: operator(
    'The gateway log says why the credential of the upstream is not available. Correct its source under auth of the upstream.',
  ),
  upstream_rate_limited: operator(
    'Every credential of the upstream is at its rate limit. Add credentials to the pool, or a target at another upstream.',
  ),
  upstream_cut: operator(
    `${SEND_AGAIN} With resume: continue on the route, the gateway continues such a response itself.`,
  ),
  answer_too_large: operator(
    'Use resume: continue instead of resume: hold on the route, or request a shorter response.',
  ),
  connect_timeout: operator(`Check the network to the upstream. ${SECOND_TARGET}`),
  first_byte_timeout: operator(
    'The upstream took too long to start. Raise timeouts.first_byte of the route, or add a second target.',
  ),
  idle_timeout: operator(
    'The upstream stopped sending. Raise timeouts.idle of the route if such pauses are normal.',
  ),
  total_timeout: operator(
    'The response took longer than the route allows. Raise timeouts.total, or request a shorter response.',
  ),
}

function client(text: string): Advice {
  return { who: 'client', text }
}

function operator(text: string): Advice {
  return { who: 'operator', text }
}
