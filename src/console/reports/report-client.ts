import { ThreadClient, ThreadError } from '../../base/threads/thread-client.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { ReportError } from './report-error.ts'
import type { ReportRequest, ReportResult, ReportSource, ReportTable } from './report-thread.ts'

export type ReportName = keyof ReportTable

export type ReportArgs<N extends ReportName> = ReportTable[N] extends (view: never, ...args: infer A) => unknown ? A : never

/** Maximum number of waiting reports. Further reports are refused. */
const MAX_PENDING = 100
const CLOSING = 'The gateway is shutting down.'

interface ReportClientOptions extends ReportSource {
  /** Maximum ms of a report, including the time that it waits. */
  readonly deadline: number
  /** Returns ms since 1970. */
  readonly now: () => number
}

/** Runs reports in a thread, one at a time. If the deadline of a report passes while it waits, it does not start. */
export class ReportClient {
  readonly #options: ReportClientOptions
  readonly #thread: ThreadClient
  #clusterFailure: string | null = null

  constructor(options: ReportClientOptions) {
    this.#options = options
    const { file, cluster } = options
    const script = threadUrl('report-thread', import.meta.url)
    this.#thread = new ThreadClient({ name: 'reports', script, workerData: { file, cluster } satisfies ReportSource, serial: true })
  }

  /** Why the last report includes only this gateway; null = it includes all gateways that share the ledger. */
  get clusterFailure(): string | null {
    return this.#clusterFailure
  }

  /**
   * @param args arguments of the report after the view
   * @throws {ReportError} from the report, `unavailable` or `not_yet`; another error for a fault
   */
  async run<N extends ReportName>(name: N, ...args: ReportArgs<N>): Promise<ReturnType<ReportTable[N]>> {
    if (this.#thread.pending >= MAX_PENDING) throw new ReportError('not_yet', 'Too many reports are running. Try again.')
    const { now, deadline } = this.#options
    try {
      const request = { name, now: now(), args } satisfies ReportRequest
      const { value, clusterFailure } = await this.#thread.request<ReportResult>(request, { timeoutMs: deadline })
      this.#clusterFailure = clusterFailure
      return value as ReturnType<ReportTable[N]>
    } catch (error) {
      throw error instanceof ThreadError ? reportError(error, deadline) : error
    }
  }

  close(): Promise<void> {
    this.#thread.cancel(CLOSING)
    return this.#thread.close()
  }
}

function reportError({ reason, message, thrown }: ThreadError, deadline: number): Error {
  switch (reason) {
    case 'closed':
      return new ReportError('not_yet', CLOSING)
    case 'timeout':
      return new ReportError('unavailable', `The ledger did not respond within ${deadline / 1_000} s. Select a shorter time range.`)
    case 'ended':
      return new ReportError('unavailable', `The report thread failed: ${message}.`)
    case 'thrown': {
      const { name, code, field, stack } = thrown ?? {}
      return name === 'ReportError'
        ? new ReportError(code as ReportError['code'], message, field as ReportError['field'])
        : new Error(stack ?? message)
    }
  }
}
