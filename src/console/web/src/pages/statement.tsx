import { Button, Select } from '@mantine/core'
import { IconPrinter } from '@tabler/icons-react'
import { useEffect } from 'react'
import { useSearchParams } from 'wouter'
import { addressOf } from '../api.ts'
import type { ResponseOf } from '../api.ts'
import { useApiQuery } from '../api-hooks.ts'
import { StatementDocument } from './billing/statement-document.tsx'
import { CsvLink } from '../components/csv-link.tsx'
import { Page, Section } from '../components/page.tsx'
import { QueryView, Empty, LoadError } from '../components/states.tsx'
import { monthName } from '../format.ts'
import { useNow } from '../use-now.ts'
import { useUser } from '../session.ts'

const MONTHS = 24
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/

/** The usage of one key in one month, to print or save. */
export default function StatementPage() {
  const { role, name } = useUser()
  const now = useNow(60_000)
  const [search, setSearch] = useSearchParams()
  const isReader = role !== 'key'
  const filters = useApiQuery('GET /filters', {}, { enabled: isReader })
  const months = monthsUpTo(now)
  const selected = search.get('month')
  const month = selected !== null && MONTH.test(selected) ? selected : months[0] ?? ''
  // `filters` has recent keys only: add the keys of the selected month.
  const used = useApiQuery('GET /billing', { query: { ...boundsOf(month), by: 'key' } }, { enabled: isReader })
  const keys = [...filters.data?.keys ?? [], ...keysIn(used.data?.groups ?? [])]
  const key = isReader ? search.get('key') ?? keys[0] ?? null : name
  const failed = [filters, used].find(({ isError }) => isError)
  const statement = useApiQuery('GET /statement', { query: { month, ...isReader && key !== null && { key } } },
    { enabled: key !== null })
  const set = (name: string, value: string) => {
    setSearch(before => {
      const next = new URLSearchParams(before)
      next.set(name, value)
      return next
    })
  }
  useEffect(() => {
    // Browsers suggest the title as the file name.
    if (key !== null) document.title = `Statement ${key} ${month}`
  }, [key, month])
  const options = [...new Set([...keys, ...key === null ? [] : [key]])].sort()
  return (
    <Page title="Statement" about="Usage and cost of one key in one month"
      actions={
        <>
          {isReader && (
            <Select aria-label="Key" w={220} searchable data={options} value={key} placeholder="Select a key"
              onChange={value => { if (value !== null) set('key', value) }} />
          )}
          <Select aria-label="Month (UTC)" w={170} value={month}
            data={[...new Set([...months, month])].map(value => ({ value, label: monthName(value) }))}
            onChange={value => { if (value !== null) set('month', value) }} />
          <CsvLink href={statement.data && addressOf('GET /billing.csv', { query: {
            from: statement.data.from, to: statement.data.to, by: 'model',
            ...isReader && { key: statement.data.key },
          } })} />
          <Button leftSection={<IconPrinter size={16} stroke={1.6} />} disabled={statement.data === undefined}
            onClick={() => { window.print() }}>
            Print or save
          </Button>
        </>
      }>
      {key === null && failed?.error
        ? <LoadError error={failed.error} retry={() => { void failed.refetch() }} />
        : key === null && filters.data !== undefined && used.data !== undefined
        ? <Section title="Usage statement"><Empty title="No usage yet">
            A key has a statement after its first request.
          </Empty></Section>
        : <QueryView of={statement} height={480}>{data => <StatementDocument statement={data} />}</QueryView>}
    </Page>
  )
}

function boundsOf(month: string): { from: string; to: string } {
  const from = new Date(`${month}-01T00:00:00Z`)
  return {
    from: from.toISOString(),
    to: new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, 1)).toISOString(),
  }
}

function keysIn(groups: ResponseOf<'GET /billing'>['groups']): string[] {
  return groups.flatMap(({ name }) => (name === null ? [] : [name])).sort()
}

/** The current month and the months before it, newest first: `2026-11`. */
function monthsUpTo(now: number): string[] {
  const date = new Date(now)
  return Array.from({ length: MONTHS }, (_, back) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1)).toISOString().slice(0, 7))
}
