import { openControl } from '../gateway/control.ts'
import { supervise } from '../gateway/supervisor.ts'
import type { WorkerStart, Listening } from '../gateway/worker-messages.ts'
import { EXIT } from './exit.ts'
import type { OpenLog } from './log.ts'
import { stopOnSignals } from './signals.ts'
import { setServingFlags } from './v8-flags.ts'
import { packageVersion } from './version.ts'

interface SuperviseOptions {
  readonly workers: number
  /** `server.drain` in ms. */
  readonly drain: number
  readonly beginning: WorkerStart
  readonly logOutput: OpenLog
  /** null = there is no ledger, and therefore no control socket. */
  readonly ledgerFile: string | null
  /** Called when all workers listen. */
  announce(listening: Listening): void
}

/** Runs workers until a signal ends them. Then the process ends. */
export async function superviseWorkers(
  { workers, drain, beginning, logOutput: opened, ledgerFile, announce }: SuperviseOptions,
): Promise<void> {
  const { log } = opened
  const supervisor = supervise(workers, drain, beginning, { log, version: packageVersion() })
  stopOnSignals(log, supervisor)
  const listening = await supervisor.ready
  const handlers = { status: () => supervisor.status(), reload: (by: string) => supervisor.requestReload(by) }
  const closeControl = ledgerFile === null ? null : await openControl(ledgerFile, handlers, log)
  if (listening !== null) announce(listening)
  // The supervisor needs serving flags too, because it counts the limits of all workers. Workers set their own flags.
  setServingFlags()
  const failed = await supervisor.ended
  closeControl?.()
  log.info('ended')
  await opened.flush()
  process.exit(failed ? EXIT.failed : EXIT.ok)
}
