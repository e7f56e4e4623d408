import type { Row } from '../../api/logs.ts'

export type End = Row['end']

/** Each end of a request in a word or two. */
export const END_LABELS: Readonly<Record<End, string>> = {
  complete: 'Complete',
  client_gone: 'Client left',
  upstream_cut: 'Cut off',
  timeout: 'Timed out',
  refused: 'Refused',
  error: 'Error',
  interrupted: 'Interrupted',
}
