/** Node's advice is removed: the gateway has configuration keys instead. */
const NODE_CA_ADVICE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca$/

/** The message of an error; any other thrown value as text. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // When several addresses fail, node gives one error for each, and no common message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error.message.replace(NODE_CA_ADVICE, '')
}
