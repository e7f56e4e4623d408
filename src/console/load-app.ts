import { createApp } from './app.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { LoginVerifier } from './login/login.ts'
import { createOperations } from './operations.ts'
import type { ClusterSource } from './reports/cluster-view.ts'
import { openReports } from './reports/reports.ts'
import { SingleSignOn } from './login/single-sign-on.ts'
import type { Workers } from './state/workers.ts'

export interface LoadOptions extends Pick<Context, 'host' | 'clock' | 'store'> {
  readonly workers: Workers
  /** The one with which the process was started; null = there is none. */
  readonly ledgerFile: string | null
  /** Where the ledger of all gateways is; null = this one's is the only one. */
  readonly cluster: ClusterSource | null
  /** ms in which a body has to come. */
  readonly bodyTimeout: number
}

/** Puts the console together. */
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
