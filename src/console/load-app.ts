import { createApp, type App } from './app.ts'
import type { Context } from './context.ts'
import { LoginVerifier } from './login/login.ts'
import { createOperations } from './operations.ts'
import type { ClusterSource } from './reports/cluster-view.ts'
import { openReports } from './reports/reports.ts'
import { SingleSignOn } from './login/single-sign-on.ts'
import type { Workers } from './state/workers.ts'

export interface LoadOptions extends Pick<Context, 'host' | 'clock' | 'store'> {
  readonly workers: Workers
  /** Path of the ledger at the start of the process; null = no ledger. */
  readonly ledgerFile: string | null
  /** null = no other gateway shares the ledger. */
  readonly cluster: ClusterSource | null
  /** ms in which the body of a request must arrive. */
  readonly bodyTimeout: number
}

export async function loadApp({ workers, ledgerFile, cluster, bodyTimeout, ...parts }: LoadOptions): Promise<App> {
  const secret = await parts.store.call('secret')
  const reports = openReports({ file: ledgerFile, cluster, now: () => parts.clock.wall(), secret })
  const context: Context = { ...parts, loginVerifier: new LoginVerifier(parts.store), singleSignOn: new SingleSignOn(secret, parts.clock), reports }
  const app = await createApp(context, createOperations(context, workers), bodyTimeout)
  return {
    handle: app.handle,
    close: async () => {
      await app.close()
      await reports.close()
    },
  }
}
