import type { ClusterConfig } from './cluster-types.ts'
import type { Address, Config, LedgerConfig, ServerConfig, TelemetryConfig } from './types.ts'

/** The settings that a gateway keeps while it runs, even if its file changes. Plain data. */
export interface StartupSettings {
  readonly server: Pick<ServerConfig, 'listen' | 'reusePort' | 'workers' | 'tls' | 'idle'>
  /** Addresses of the listeners; null = none. */
  readonly console: Address | null
  readonly docs: Address | null
  readonly ledger: LedgerConfig | null
  readonly telemetry: TelemetryConfig
  readonly cluster: ClusterConfig | null
}

/** The startup settings of a configuration. */
export function startupSettingsOf({ server, console, docs, ledger, telemetry, cluster }: Config): StartupSettings {
  const { listen, reusePort, workers, tls, idle } = server
  return {
    server: { listen, reusePort, workers, tls, idle },
    console: console?.listen ?? null,
    docs: docs?.listen ?? null,
    ledger,
    telemetry,
    cluster,
  }
}

/** A new configuration with the startup settings of the configuration that the gateway was started with. */
export function withStartupSettings(config: Config, start: StartupSettings): Config {
  // TLS is switched on or off at the start; the certificate can change.
  const tls = start.server.tls && (config.server.tls ?? start.server.tls)
  return {
    ...config,
    server: { ...config.server, ...start.server, tls },
    console: start.console && {
      publicUrl: config.console?.publicUrl ?? null, users: config.console?.users ?? [], oidc: config.console?.oidc ?? null,
      listen: start.console,
    },
    docs: start.docs && { listen: start.docs },
    ledger: start.ledger,
    telemetry: start.telemetry,
    cluster: start.cluster,
  }
}
