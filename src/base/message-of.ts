/** What Node adds to OpenSSL's words, for who runs a program with it; the configuration has keys for it. */
const NODE_CA_ADVICE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca$/

/** What an error says; anything else that was thrown, as a text. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // An attempt at several addresses has an error for each, and no message of its own.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ')
  return error.message.replace(NODE_CA_ADVICE, '')
}
