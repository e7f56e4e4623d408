import { readFileSync } from 'node:fs'
import { ERRORS } from '../../src/base/errors.ts'
import { code, table } from './markdown.ts'

const PAGE = new URL('../errors.md', import.meta.url)

/** docs/errors.md with its table generated from src/base/errors.ts. The text around it is written by hand. */
export function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(
    ([name, { status, source, retryable, about }]) => [code(name), String(status), source, retryable ? 'yes' : 'no', about],
  )
  const made = table(['Code', 'Status', 'Source', 'Retry', 'Meaning'], rows)
  const page = readFileSync(PAGE, 'utf8')
  const start = page.indexOf('| Code |')
  const end = page.indexOf('\n\n', start)
  return `${page.slice(0, start)}${made}${page.slice(end)}`
}
