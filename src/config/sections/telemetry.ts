import type { ProxyRules } from '../../base/outgoing-proxy.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { RawConfig, RawTelemetry } from '../raw.ts'
import type { Environment } from '../text/references.ts'
import type { Address, OtlpConfig, TelemetryConfig } from '../types.ts'
import { checkHeaderValue, headerName } from './header.ts'
import { timerDurationOf } from './values.ts'

const DEFAULT_INTERVAL = 60_000
const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const

interface Outside {
  /** May contain OTEL_EXPORTER_OTLP_PROTOCOL. */
  readonly env: Environment
  readonly proxy: ProxyRules | null
}

/** @param listen address for Prometheus; null = no listener for Prometheus */
export function buildTelemetry(
  { telemetry: raw = {} }: RawConfig, listen: Address | null, outside: Outside, findings: Findings,
): TelemetryConfig {
  const path = ['telemetry']
  checkTraceUrl(raw.trace_url, [...path, 'trace_url'], findings)
  const otlp = raw.otlp === undefined ? null : buildOtlp(raw.otlp, [...path, 'otlp'], outside, findings)
  if (raw.trace_url !== undefined && !otlp?.traces) {
    findings.warn([...path, 'trace_url'], 'no request has a trace to link to: traces need telemetry.otlp, with traces: true')
  }
  return { prometheus: listen && { listen }, otlp, conventions: raw.conventions ?? 'v1.41', traceUrl: raw.trace_url ?? null }
}

function buildOtlp(raw: NonNullable<RawTelemetry['otlp']>, path: Path, { env, proxy }: Outside, findings: Findings): OtlpConfig {
  if (raw.endpoint !== undefined && !/^https?:\/\/[^/\\]/i.test(raw.endpoint)) {
    findings.error([...path, 'endpoint'], 'this is not an http or https URL such as http://127.0.0.1:4318')
  }
  const headers = Object.create(null) as Record<string, string>
  for (const [name, value] of Object.entries(raw.headers ?? {})) {
    if (value === undefined) continue
    headers[headerName(name, [...path, 'headers', name], findings, 'key')] = value
    checkHeaderValue(value, [...path, 'headers', name], findings)
  }
  return {
    endpoint: raw.endpoint?.replace(/\/+$/, '') ?? null,
    protocol: raw.protocol ?? PROTOCOLS.find(name => name === env.OTEL_EXPORTER_OTLP_PROTOCOL) ?? 'http/protobuf',
    headers,
    traces: raw.traces ?? true,
    metrics: raw.metrics ?? true,
    interval: timerDurationOf(raw.interval, [...path, 'interval'], DEFAULT_INTERVAL, findings),
    sample: raw.sample ?? 1,
    content: raw.content ?? false,
    proxy,
  }
}

function checkTraceUrl(text: string | undefined, path: Path, findings: Findings): void {
  if (text === undefined) return
  const isUrl = /^https?:$/.test(URL.parse(text)?.protocol ?? '')
  if (isUrl && text.includes('{trace_id}')) return
  findings.error(path, 'this is not a URL with {trace_id}, such as https://tempo.example.com/trace/{trace_id}')
}
