import type { Row } from '../../api/logs.ts'

export type End = Row['end']

/** Labels of the ends of requests. */
export const END_LABELS: Readonly<Record<End, string>> = {
  complete: 'Complete',
  client_gone: 'Client disconnected',
  upstream_cut: 'Upstream disconnected',
  timeout: 'Timed out',
  refused: 'Refused',
  error: 'Error',
  interrupted: 'Interrupted',
}
