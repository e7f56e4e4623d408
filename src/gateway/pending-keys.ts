import type { Config } from '../config/types.ts'

/** What only a start can decide, by its key in the file. */
const RESTART_ONLY_KEYS: Readonly<Record<string, (config: Config) => unknown>> = {
  'server.listen': ({ server }) => server.listen,
  'server.reuse_port': ({ server }) => server.reusePort,
  'server.workers': ({ server }) => server.workers,
  // Which certificate is shown is another matter.
  'server.tls': ({ server }) => server.tls !== null,
  'console.listen': ({ console }) => console?.listen,
  'docs.listen': ({ docs }) => docs?.listen,
  'ledger.file': ({ ledger }) => ledger?.file,
  'ledger.keep': ({ ledger }) => ledger?.keep ?? null,
}

/**
 * The keys that take a restart in which a configuration differs from that with which the process was started.
 */
export function pendingKeys(started: Config, config: Config): string[] {
  return Object.entries(RESTART_ONLY_KEYS)
    .filter(([, valueOf]) => JSON.stringify(valueOf(started)) !== JSON.stringify(valueOf(config)))
    .map(([key]) => key)
}
