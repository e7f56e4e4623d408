import type { ResponseOf } from '../../api.ts'
import { lineHref } from '../../links.ts'

export type Alert = ResponseOf<'GET /live'>['concerns'][number]

/** Alerts of the same kind and severity. */
export interface AlertGroup {
  readonly kind: Alert['kind']
  readonly severity: Alert['severity']
  readonly alerts: readonly Alert[]
  /** Start of the first alert, ISO 8601; null = unknown. */
  readonly since: string | null
}

/** @returns groups in the order of their first alerts */
export function groupsOf(alerts: readonly Alert[]): AlertGroup[] {
  return [...Map.groupBy(alerts, ({ kind, severity }) => `${severity} ${kind}`).values()].flatMap(group => {
    const [first] = group
    if (!first) return []
    const times = group.flatMap(({ since }) => (since === null ? [] : [since])).sort()
    return [{ kind: first.kind, severity: first.severity, alerts: group, since: times[0] ?? null }]
  })
}

/** What several alerts of the same kind concern. */
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

/** The title of a group, such as `15 models without a price`. */
export function groupText({ kind, alerts }: AlertGroup): string {
  return `${alerts.length} ${NOUNS[kind]}`
}

export interface AlertLink {
  readonly href: string
  readonly text: string
}

/** Link to the line of the configuration that an alert concerns; null = no line. */
export function lineLinkOf({ kind, line }: Alert): AlertLink | null {
  return line === null ? null : { href: lineHref(line, kind === 'reload_failed' ? 'rejected' : 'active'), text: `Line ${line}` }
}

/**
 * The links by which an alert can be inspected or fixed: the first page that the user may see, and the line of the configuration.
 *
 * @param sees tells whether the user may see the page of a URL
 */
export function linksOf(group: AlertGroup, sees: (href: string) => boolean): readonly AlertLink[] {
  const [first] = group.alerts
  const line = group.alerts.length === 1 && first ? lineLinkOf(first) : null
  const page = pagesOf(group).find(({ href }) => sees(href))
  // The page already contains the line, so one link is enough.
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
