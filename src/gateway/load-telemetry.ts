import type { Registry } from 'prom-client'
import type { Config } from '../config/types.ts'
import type { GatewayParts } from '../pipeline/parts/gateway.ts'
import type { MetricsOutput, Telemetry } from '../telemetry/telemetry.ts'

/** The libraries take time and memory, so they are loaded only if the configuration has telemetry. */
const load = () => import('../telemetry/telemetry.ts')

/** null = the configuration has no telemetry */
export async function openTelemetry(
  { telemetry: config, server: { workers } }: Config, { version, log, worker }: Pick<GatewayParts, 'version' | 'log' | 'worker'>,
): Promise<Telemetry | null> {
  if (config.prometheus === null && config.otlp === null) return null
  const { openTelemetry: open } = await load()
  return open({ config, version, log, worker: worker === undefined ? null : { number: worker, count: workers } })
}

/** Serves and sends the metrics that `collect` returns. @throws the system's error when the address cannot be listened on */
export async function openMetricsOutput(
  { telemetry: config }: Pick<Config, 'telemetry'>, { version, log }: Pick<GatewayParts, 'version' | 'log'>,
  collect: () => Promise<readonly Registry[]>,
): Promise<MetricsOutput> {
  const { openMetricsOutput: open } = await load()
  return open({ config, version, log }, collect)
}
