import { useApiQuery } from '../ask.ts'
import { Budgets } from './billing/budgets.tsx'
import { Page } from '../components/page.tsx'
import { QueryView } from '../components/states.tsx'
import { OwnLimits } from './own/limits.tsx'
import { OwnModels } from './own/models.tsx'
import { useUser } from '../session.ts'

/** What bears on the key that one is logged in with. */
export default function OwnPage() {
  const { name } = useUser()
  const own = useApiQuery('GET /own', {}, { every: 5_000 })
  const models = useApiQuery('GET /models', {})
  return (
    <Page title="My key" about={`What the key ${name} may use, and what is left of it`}>
      <QueryView of={own} height={140}>{data => <OwnLimits own={data} />}</QueryView>
      <Budgets />
      <QueryView of={models} height={240}>
        {data => <OwnModels models={data.models} allowed={own.data?.models ?? null} />}
      </QueryView>
    </Page>
  )
}
