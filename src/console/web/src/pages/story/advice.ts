import type { ErrorCode } from '../../../../../base/errors.ts'
import type { Row } from '../../../../api/logs.ts'

/** Who can do something about it, and what. */
export interface Advice {
  readonly who: 'client' | 'operator'
  readonly text: string
}

/** @returns what to do about how a request ended; null where nothing is wrong */
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
        'Compare the timeline with the timeouts of the route, and raise the one that was too short.',
      )
    case 'refused':
      return client('Change what the explanation names, and send it again.')
    case 'interrupted':
      return client('Send it again. Whoever runs the gateway finds why the process ended in its log.')
    case 'error':
      return client(
        'The upstream answered with an error of its own, which the client got unchanged: its text ' +
          'says what to change.',
      )
  }
}

const SEND_AGAIN = 'Send it again; the client libraries do so by themselves.'
const OF_KEY = 'on the Keys page, or in gateway.yaml where the key stands there'
const MORE_TARGETS =
  'If it happens often, give the route a second target, so that another upstream takes over.'

const ADVICE: Readonly<Record<ErrorCode, Advice>> = {
  bad_request_target: client(
    'Correct the path: it has to be a plain absolute one, without dot segments or odd escapes.',
  ),
  bad_header: client('Remove or correct the header that the error message names.'),
  bad_framing: client(
    'Something between client and gateway garbles HTTP: look at the proxy or the client library in use.',
  ),
  headers_too_large: client('Send smaller headers; most often cookies or a tracing header have grown.'),
  headers_timeout: client('The connection is too slow or was left idle. Send it again on a new one.'),
  invalid_json: client('Correct the body: it is not JSON. The error message says where it breaks.'),
  empty_body: client('Send a body: this endpoint reads its request from there.'),
  wrong_content_type: client('Set the content type that the error message names.'),
  wrong_content_encoding: client('Send the body uncompressed, or with gzip, br or zstd.'),
  invalid_form: client(
    'Correct the multipart form; most often its boundary is missing from the content type.',
  ),
  model_required: client('Name a model in the request.'),
  model_ambiguous: client('Name one model: path, query and body disagree.'),
  body_timeout: client('The client paused too long while it sent the body: look at its connection.'),
  body_too_large: operator('Send less, or raise server.body_limit.'),
  missing_key: client('Send the key, as Authorization: Bearer, x-api-key, x-goog-api-key or api-key.'),
  invalid_key: client('Check the key: it is mistyped, was revoked, or belongs to another gateway.'),
  key_revoked: client(
    'Use another key: this one was revoked or blocked, and what it had under way was ended.',
  ),
  model_not_allowed: operator(
    `Use a model that the key may use, or let the key use this one ${OF_KEY}.`,
  ),
  model_unpriced: operator(
    'Give the model a price under models in gateway.yaml; a budget cannot be held without one.',
  ),
  unknown_path: client('Check the base URL: a missing or doubled /v1 is the usual reason.'),
  model_not_found: operator(
    'Check the spelling of the model, or add a route for it. The explain form shows why each route passed.',
  ),
  method_not_allowed: client('Use the method that the answer\'s allow header names.'),
  upgrade_required: client('Nothing: clients fall back to plain HTTP by themselves after this answer.'),
  rate_limited: operator(
    `Send fewer requests at once and wait as long as retry-after says, or raise the limit ${OF_KEY}.`,
  ),
  budget_spent: operator(`Wait until the budget's period ends, or raise the budget ${OF_KEY}.`),
  client_gone: client(
    'If that was not on purpose, raise the timeout of the client. What was generated until then is billed.',
  ),
  client_stalled: client('The client stopped reading the answer: look at what it does while it streams.'),
  internal: operator('Look for the request id in the log of the gateway, and report what stands there.'),
  overloaded: operator(`${SEND_AGAIN} If it happens often, raise server.max_* or add workers.`),
  draining: client(`The gateway was shutting down. ${SEND_AGAIN}`),
  upstream_unreachable: operator(
    `Check the upstream's url, its DNS name and the network between. ${MORE_TARGETS}`,
  ),
  upstream_reset: operator(`${SEND_AGAIN} ${MORE_TARGETS}`),
  upstream_invalid: operator(
    'Check that the upstream\'s url leads to the provider and not to some other server.',
  ),
  upstream_rejected_key: operator(
    'The provider refuses the key in gateway.yaml: replace it in the upstream\'s auth, and reload.',
  ),
  upstream_cut: operator(
    `${SEND_AGAIN} With resume on the route, the gateway continues such an answer by itself.`,
  ),
  answer_too_large: operator(
    'Use resume: continue on the route in place of hold, or ask for a shorter answer.',
  ),
  connect_timeout: operator(`Check the network to the upstream. ${MORE_TARGETS}`),
  first_byte_timeout: operator(
    'The upstream took too long to begin. Raise timeouts.first_byte of the route, or give it a ' +
      'second target.',
  ),
  idle_timeout: operator(
    'The upstream fell silent. Raise timeouts.idle of the route if its pauses are normal.',
  ),
  total_timeout: operator(
    'The answer took longer than the route allows. Raise timeouts.total, or ask for less.',
  ),
}

function client(text: string): Advice {
  return { who: 'client', text }
}

function operator(text: string): Advice {
  return { who: 'operator', text }
}
