import type { ResponseOf } from '../../api.ts'
import { lineHref } from '../../links.ts'

export type Alert = ResponseOf<'GET /live'>['concerns'][number]

/** Alerts of the same kind and severity. */
export interface AlertGroup {
  readonly kind: Alert['kind']
  readonly severity: Alert['severity']
  readonly alerts: readonly Alert[]
  /** When the first of them began, ISO 8601; null: unknown. */
  readonly since: string | null
}

/** @returns in the order of the alerts */
export function groupsOf(alerts: readonly Alert[]): AlertGroup[] {
  return [...Map.groupBy(alerts, ({ kind, severity }) => `${severity} ${kind}`).values()].flatMap(group => {
    const [first] = group
    if (!first) return []
    const times = group.flatMap(({ since }) => (since === null ? [] : [since])).sort()
    return [{ kind: first.kind, severity: first.severity, alerts: group, since: times[0] ?? null }]
  })
}

/** What several alerts of a kind are about. */
const NOUNS: Readonly<Record<Alert['kind'], string>> = {
  unpriced_model: 'models without a price',
  upstream_key_rejected: 'upstreams that refuse their credential',
  circuit_open: 'open circuits',
  reload_failed: 'rejected reloads',
  restart_needed: 'changes that need a restart',
  ledger: 'problems of the ledger',
  budget: 'budgets that are used up or almost used up',
  cluster: 'problems of the cluster',
  no_keys: 'problems of the keys',
  key_store: 'problems of the key store',
  certificate: 'certificates that end soon',
}

/** `15 models without a price` */
export function groupText({ kind, alerts }: AlertGroup): string {
  return `${alerts.length} ${NOUNS[kind]}`
}

export interface AlertLink {
  readonly href: string
  readonly text: string
}

/** Pages to inspect or fix an alert. The link goes to the first one that the user may see. */
export function linksOf({ kind, alerts }: AlertGroup): readonly AlertLink[] {
  const [first] = alerts
  const subject = alerts.length === 1 ? first?.subject ?? null : null
  const upstream = subject === null
    ? { href: '/upstreams', text: 'Upstreams' }
    : { href: `/upstreams/${encodeURIComponent(subject)}`, text: 'Upstream' }
  switch (kind) {
    case 'circuit_open':
    case 'upstream_key_rejected':
      return [upstream]
    case 'unpriced_model': {
      const q = `cost:none${subject === null ? '' : ` model:${JSON.stringify(subject)}`}`
      return [{ href: `/logs?${new URLSearchParams({ range: '24h', q })}`, text: 'Unpriced requests' }]
    }
    case 'budget':
      return [{ href: '/own', text: 'My key' }, { href: '/billing', text: 'Budgets' }]
    case 'no_keys':
    case 'key_store':
      return [{ href: '/keys', text: 'Keys' }]
    case 'cluster':
      return []
    case 'reload_failed':
      return [typeof first?.line === 'number' ? { href: lineHref(first.line, 'rejected'), text: `Line ${first.line}` }
        : { href: '/configuration', text: 'Configuration' }]
    default:
      return [{ href: '/configuration', text: 'Configuration' }]
  }
}
