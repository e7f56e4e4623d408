import type { ClusterConfig } from './cluster-types.ts'
import type { Address, Config, LedgerConfig, ServerConfig, TelemetryConfig } from './types.ts'

/** The settings that a running gateway keeps, even if the file changes. They can be sent to another process. */
export interface StartupSettings {
  readonly server: Pick<ServerConfig, 'listen' | 'reusePort' | 'workers' | 'tls' | 'idle'>
  /** Address of the console's listener; null = none. */
  readonly console: Address | null
  readonly docs: Address | null
  readonly ledger: LedgerConfig | null
  readonly telemetry: TelemetryConfig
  readonly cluster: ClusterConfig | null
}

export function startupSettingsOf({ server, console, docs, ledger, telemetry, cluster }: Config): StartupSettings {
  const { listen, reusePort, workers, tls, idle } = server
  const addresses = { console: console?.listen ?? null, docs: docs?.listen ?? null }
  return { server: { listen, reusePort, workers, tls, idle }, ...addresses, ledger, telemetry, cluster }
}

/** Combines a new configuration with the settings from the start of the gateway. */
export function withStartupSettings(config: Config, start: StartupSettings): Config {
  const { ledger, telemetry, cluster } = start
  // TLS stays on or off, as at the start. The certificate can change.
  const tls = start.server.tls && (config.server.tls ?? start.server.tls)
  return {
    ...config,
    server: { ...config.server, ...start.server, tls },
    console: start.console && { publicUrl: null, users: [], oidc: null, ...config.console, listen: start.console },
    docs: start.docs && { listen: start.docs },
    ledger, telemetry, cluster,
  }
}
