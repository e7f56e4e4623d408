import type { Findings } from '../text/findings.ts'
import type { RawConfig } from '../raw.ts'
import type { AlertsConfig } from '../types.ts'

const DEFAULT_SHARES = [80, 100]

export function buildAlerts({ alerts }: RawConfig, findings: Findings): AlertsConfig | null {
  if (alerts === undefined) return null
  const { webhook, budget } = alerts
  if (webhook?.url !== undefined && !/^https?:$/.test(URL.parse(webhook.url)?.protocol ?? '')) {
    findings.error(['alerts', 'webhook', 'url'], 'this is not a URL such as https://hooks.example.com/gateway')
  }
  const shares = (budget ?? DEFAULT_SHARES).filter(share => share !== undefined)
  return {
    webhook: webhook?.url === undefined ? null : {
      url: webhook.url,
      headers: Object.fromEntries(Object.entries(webhook.headers ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
      secret: webhook.secret ?? null,
    },
    budget: shares.toSorted((a, b) => a - b),
  }
}
