import type { ClusterConfig } from './cluster-types.ts'
import type { Address, Config, LedgerConfig, ServerConfig, TelemetryConfig } from './types.ts'

/** What a gateway keeps for as long as it runs, whatever its file says later. Plain data. */
export interface StartupSettings {
  readonly server: Pick<ServerConfig, 'listen' | 'reusePort' | 'workers' | 'tls' | 'idle'>
  /** Where they listen; null = not at all. */
  readonly console: Address | null
  readonly docs: Address | null
  readonly ledger: LedgerConfig | null
  readonly telemetry: TelemetryConfig
  readonly cluster: ClusterConfig | null
}

/** What a gateway keeps that is started with this configuration. */
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

/** A configuration as it is active in a gateway that was started with another. */
export function withStartupSettings(config: Config, start: StartupSettings): Config {
  // Whether TLS is spoken is decided at the start; which certificate is shown is not.
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
