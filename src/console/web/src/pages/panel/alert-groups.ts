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
  store: 'stores that take no writes',
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

/** The line of the configuration that an alert is about; null = there is none. */
export function lineLinkOf({ kind, line }: Alert): AlertLink | null {
  return line === null ? null : { href: lineHref(line, kind === 'reload_failed' ? 'rejected' : 'active'), text: `Line ${line}` }
}

/**
 * Links to inspect or fix an alert: to the first page that the user may see, and to the line of the configuration.
 *
 * @param sees whether the user may see the page of an address
 */
export function linksOf(group: AlertGroup, sees: (href: string) => boolean): readonly AlertLink[] {
  const [first] = group.alerts
  const line = group.alerts.length === 1 && first ? lineLinkOf(first) : null
  const page = pagesOf(group).find(({ href }) => sees(href))
  // The line is on that page.
  if (line !== null && page === CONFIGURATION) return [line]
  return [...page ? [page] : [], ...line !== null && sees(line.href) ? [line] : []]
}

const CONFIGURATION: AlertLink = { href: '/configuration', text: 'Configuration' }

function pagesOf({ kind, alerts }: AlertGroup): readonly AlertLink[] {
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
    default:
      return [CONFIGURATION]
  }
}
