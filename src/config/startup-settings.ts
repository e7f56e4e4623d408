import type { ClusterConfig } from './cluster-types.ts'
import type { Address, Config, LedgerConfig, ServerConfig, TelemetryConfig } from './types.ts'

/** The settings that a running gateway keeps, even if its file changes. Plain data. */
export interface StartupSettings {
  readonly server: Pick<ServerConfig, 'listen' | 'reusePort' | 'workers' | 'tls' | 'idle'>
  /** Address of the listener; null = none. */
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

/** A new configuration, with the settings with which the gateway was started. */
export function withStartupSettings(config: Config, start: StartupSettings): Config {
  const { ledger, telemetry, cluster } = start
  // TLS is switched on or off at the start; the certificate can change.
  const tls = start.server.tls && (config.server.tls ?? start.server.tls)
  return {
    ...config,
    server: { ...config.server, ...start.server, tls },
    console: start.console && { publicUrl: null, users: [], oidc: null, ...config.console, listen: start.console },
    docs: start.docs && { listen: start.docs },
    ledger, telemetry, cluster,
  }
}
