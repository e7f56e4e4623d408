import type { Registry } from 'prom-client'
import type { Config } from '../config/types.ts'
import type { GatewayParts } from '../pipeline/parts/gateway.ts'
import type { MetricsOutput, Telemetry } from '../telemetry/telemetry.ts'

/** Loads the telemetry libraries. Called only if the configuration has telemetry, because they take time and memory. */
const load = () => import('../telemetry/telemetry.ts')

/** @returns null = the configuration has no telemetry */
export async function openTelemetry(
  { telemetry: config, server: { workers } }: Config, { version, log, worker }: Pick<GatewayParts, 'version' | 'log' | 'worker'>,
): Promise<Telemetry | null> {
  if (config.prometheus === null && config.otlp === null) return null
  const { openTelemetry: open } = await load()
  return open({ config, version, log, worker: worker === undefined ? null : { number: worker, count: workers } })
}

/** Serves and sends the metrics that `collect` returns. @throws the system's error if the address cannot be used */
export async function openMetricsOutput(
  { telemetry: config }: Pick<Config, 'telemetry'>, { version, log }: Pick<GatewayParts, 'version' | 'log'>,
  collect: () => Promise<readonly Registry[]>,
): Promise<MetricsOutput> {
  const { openMetricsOutput: open } = await load()
  return open({ config, version, log }, collect)
}
