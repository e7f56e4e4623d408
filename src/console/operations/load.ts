import { createApp } from '../app.ts'
import type { App } from '../app.ts'
import type { Context } from '../context.ts'
import { Logins } from '../login.ts'
import { createOperations } from './index.ts'
import { openReports } from '../reports/reports.ts'
import type { Workers } from '../workers.ts'

export interface LoadOptions extends Pick<Context, 'host' | 'clock' | 'desk'> {
  readonly workers: Workers
  /** The one with which the process was started; null = there is none. */
  readonly ledgerFile: string | null
  /** ms in which a body has to come. */
  readonly bodyTime: number
}

/** Puts the console together. */
export async function loadApp({ workers, ledgerFile, bodyTime, ...parts }: LoadOptions): Promise<App> {
  const secret = await parts.desk.ask('secret')
  const reports = openReports({ file: ledgerFile, now: () => parts.clock.wall(), secret })
  const context: Context = { ...parts, logins: new Logins(parts.desk), reports }
  const app = await createApp(context, createOperations(context, workers), bodyTime)
  return {
    handle: app.handle,
    close: async () => {
      await app.close()
      await reports.close()
    },
  }
}
