import type { Keys } from '../../../../api/keys.ts'
import { DataTable } from '../../components/data-table.tsx'
import { LimitLines } from '../../components/limits.tsx'
import { Section } from '../../components/page/page.tsx'
import { counted } from '../../format.ts'
import { Globs } from './globs.tsx'

type Group = Keys['groups'][number]

/** Number of groups that are shown at first. */
const STEP = 100

/** The groups in gateway.yaml, with the limits that the keys of each group share. */
export function GroupTable({ groups, keys }: Pick<Keys, 'groups' | 'keys'>) {
  const keysIn = (group: string) => keys.filter(key => key.group === group && key.state !== 'revoked').length
  return (
    <Section title="Groups" flush about="From gateway.yaml. A request counts against its key and every group above it">
      <DataTable label="Groups" rows={groups} id={({ name }) => name} phone="cards" step={STEP} columns={[
        { id: 'name', title: 'Name', sort: ({ name }) => name, cell: ({ name }) => name },
        {
          id: 'parent', title: 'Part of', sort: ({ parent }) => parent ?? '',
          cell: ({ parent }) => parent ?? <span className="dim">none</span>,
        },
        {
          id: 'keys', title: 'Keys', sort: ({ name }) => keysIn(name),
          cell: ({ name }: Group) => counted(keysIn(name), 'key'),
        },
        { id: 'models', title: 'Models', long: 'wrap', cell: ({ models }) => <Globs models={models} /> },
        { id: 'limits', title: 'Shared limits', long: 'wrap', cell: ({ limits }) => <LimitLines limits={limits} /> },
      ]} />
    </Section>
  )
}
