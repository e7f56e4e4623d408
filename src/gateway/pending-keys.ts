import type { Config } from '../config/types.ts'

/** Configuration keys that take effect only at a restart. */
const RESTART_ONLY_KEYS: ReadonlyMap<string, (config: Config) => unknown> = new Map(Object.entries({
  'server.listen': ({ server }) => server.listen,
  'server.reuse_port': ({ server }) => server.reusePort,
  'server.workers': ({ server }) => server.workers,
  // A changed certificate is applied without a restart. Switching TLS on or off needs a restart.
  'server.tls': ({ server }) => server.tls !== null,
  'console.listen': ({ console }) => console?.listen,
  'docs.listen': ({ docs }) => docs?.listen,
  'ledger.file': ({ ledger }) => ledger?.file,
  'ledger.keep': ({ ledger }) => ledger?.keep ?? null,
  telemetry: ({ telemetry }) => telemetry,
  cluster: ({ cluster }) => cluster,
}))

/** The restart-only keys whose values differ between a configuration and the configuration at the start. */
export function pendingKeys(started: Config, config: Config): string[] {
  return [...RESTART_ONLY_KEYS]
    .filter(([, valueOf]) => JSON.stringify(valueOf(started)) !== JSON.stringify(valueOf(config)))
    .map(([key]) => key)
}
