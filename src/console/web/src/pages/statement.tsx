import { Button, Select } from '@mantine/core'
import { IconPrinter } from '@tabler/icons-react'
import { useEffect } from 'react'
import { useSearchParams } from 'wouter'
import { addressOf } from '../api.ts'
import { useApiQuery } from '../api-hooks.ts'
import { monthBounds, monthsUpTo } from './billing/months.ts'
import { StatementDocument } from './billing/statement-document.tsx'
import { StatementList } from './billing/statement-list.tsx'
import { CsvLink } from '../components/csv-link.tsx'
import { Page } from '../components/page/page.tsx'
import { QueryView } from '../components/page/states.tsx'
import { monthName } from '../format.ts'
import { useNow } from '../use-now.ts'
import { useUser } from '../session.ts'

const MONTHS = 24
const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/

/** The statement of one key, owner, user or tag for one month, to print or save. Without one in the URL, the list of all statements. */
export default function StatementPage() {
  const { role, name } = useUser()
  const [search] = useSearchParams()
  const owner = role === 'key' ? null : search.get('owner')
  const key = role === 'key' ? name : search.get('key')
  const [user, tag] = [search.get('user'), search.get('tag')]
  if (user !== null) return <OneStatement of={{ user }} />
  if (tag !== null) return <OneStatement of={{ tag }} />
  if (owner !== null) return <OneStatement of={{ owner }} />
  if (key !== null) return <OneStatement of={{ key }} />
  return <Statements />
}

/** The keys and owners with their costs in two months. Each amount is a link to the statement. */
function Statements() {
  return (
    <Page title="Statements" about="Usage and cost of one key, owner, user or tag in one month. Select an amount to see its statement"
      actions={<MonthSelect />}>
      <StatementList month={useMonth()} />
    </Page>
  )
}

type Subject = { readonly [N in 'key' | 'owner' | 'user' | 'tag']?: string }

function OneStatement({ of }: { readonly of: Subject }) {
  const { role } = useUser()
  const month = useMonth()
  const [, setSearch] = useSearchParams()
  const isReader = role !== 'key'
  const filters = useApiQuery('GET /filters', {}, { enabled: isReader })
  const asked = isReader || of.key === undefined ? of : {}
  const statement = useApiQuery('GET /statement', { query: { month, ...asked } })
  const [[kind, subject] = ['key', '']] = Object.entries(of)
  useEffect(() => {
    // Set the title, because browsers suggest it as the name of the file.
    document.title = `Statement ${subject} ${month}`
  }, [subject, month])
  const options = (name: string, names: readonly string[] = []) =>
    [...new Set([...names, ...name === kind ? [subject] : []])].sort().map(label => ({ value: `${name} ${label}`, label }))
  return (
    <Page title="Statement" about={`Usage and cost of one ${kind} in one month`}
      actions={
        <>
          {isReader && (
            <Select aria-label="Key or owner" w={220} searchable value={`${kind} ${subject}`}
              data={[
                { group: 'Keys', items: options('key', filters.data?.keys) },
                { group: 'Owners', items: options('owner', filters.data?.owners) },
                ...kind === 'user' || kind === 'tag' ? [{ group: kind === 'user' ? 'Users' : 'Tags', items: options(kind) }] : [],
              ]}
              onChange={value => {
                if (value === null) return
                const at = value.indexOf(' ')
                setSearch({ [value.slice(0, at)]: value.slice(at + 1), month })
              }} />
          )}
          <MonthSelect />
          <CsvLink href={statement.data && addressOf('GET /billing.csv', { query: {
            ...monthBounds(month), ...asked, by: isReader ? 'key,model' : 'model',
          } })} />
          <Button leftSection={<IconPrinter size={16} stroke={1.6} />} disabled={statement.data === undefined}
            onClick={() => { window.print() }}>
            Print or save
          </Button>
        </>
      }>
      <QueryView of={statement} height={480}>{data => <StatementDocument statement={data} />}</QueryView>
    </Page>
  )
}

/** The month in the page's URL, such as `2026-11`; the current month if the URL has none. */
function useMonth(): string {
  const now = useNow(60_000)
  const [search] = useSearchParams()
  const selected = search.get('month')
  return selected !== null && MONTH.test(selected) ? selected : monthsUpTo(now, 1)[0] ?? ''
}

function MonthSelect() {
  const now = useNow(60_000)
  const month = useMonth()
  const [, setSearch] = useSearchParams()
  return (
    <Select aria-label="Month (UTC)" w={170} value={month}
      data={[...new Set([...monthsUpTo(now, MONTHS), month])].map(value => ({ value, label: monthName(value) }))}
      onChange={value => {
        if (value === null) return
        setSearch(before => {
          const next = new URLSearchParams(before)
          next.set('month', value)
          return next
        })
      }} />
  )
}
