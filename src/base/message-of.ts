/** Matches advice from node that is removed, because the gateway has configuration keys for this purpose. */
const NODE_CA_ADVICE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca$/

/** The message of an error. Any other thrown value is converted to text. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // If a connection fails at several addresses, node gives one error for each address, and an empty message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error.message.replace(NODE_CA_ADVICE, '')
}
