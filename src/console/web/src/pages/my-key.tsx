import { useApiQuery } from '../api-hooks.ts'
import { Budgets } from './billing/budgets.tsx'
import { Page } from '../components/page/page.tsx'
import { QueryView } from '../components/page/states.tsx'
import { RemainingLimits } from './my-key/limits.tsx'
import { AllowedModels } from './my-key/models.tsx'
import { OwnKeys } from './my-key/own-keys.tsx'
import { useUser } from '../session.ts'

/** The limits, budgets and models of the key with which the user logged in, or of the caller, with the keys that it has made. */
export default function MyKeyPage() {
  const { name } = useUser()
  const own = useApiQuery('GET /own', {}, { every: 5_000 })
  const keys = useApiQuery('GET /own/keys', {})
  const models = useApiQuery('GET /models', {})
  return (
    <Page title="My key" about={`Remaining limits, budgets and models of ${name}`}>
      <QueryView of={own} height={140}>{data => <RemainingLimits own={data} />}</QueryView>
      <QueryView of={keys} height={100}>{data => <OwnKeys data={data} />}</QueryView>
      <Budgets />
      <QueryView of={models} height={240}>
        {data => <AllowedModels models={data.models} allowed={own.data?.models ?? null} />}
      </QueryView>
    </Page>
  )
}
