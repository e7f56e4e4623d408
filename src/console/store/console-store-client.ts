import { ThreadClient, ThreadError } from '../../base/threads/thread-client.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import type { ConsoleStore, ConsoleStoreOptions } from './console-store.ts'

export interface StoreCall {
  readonly method: keyof ConsoleStore
  readonly args: readonly unknown[]
}

type StoreResult<M extends keyof ConsoleStore> = Awaited<ReturnType<ConsoleStore[M]>>

export class ConsoleStoreError extends Error {
  override readonly name = 'ConsoleStoreError'
  /** The code of the key store's error, such as `taken`; `down` = the store cannot be called; null = another error. */
  readonly code: string | null

  constructor(code: string | null, message: string) {
    super(message)
    this.code = code
  }
}

/** Maximum ms of a call: a change of a key may wait for other processes. */
const CALL_TIMEOUT_MS = 15_000
const CLOSE_TIMEOUT_MS = 2_000

/** Calls a ConsoleStore in a thread, because the store's methods block. */
export class ConsoleStoreClient {
  readonly #thread: ThreadClient
  /** Name of the store in errors. */
  readonly #name: string

  constructor(options: ConsoleStoreOptions) {
    this.#name = options.consoleFile ?? 'the store'
    this.#thread = new ThreadClient({ name: 'console', script: threadUrl('console-store-thread', import.meta.url), workerData: options })
  }

  /** @throws {ConsoleStoreError} */
  async call<M extends keyof ConsoleStore>(method: M, ...args: Parameters<ConsoleStore[M]>): Promise<StoreResult<M>> {
    try {
      return await this.#thread.request<StoreResult<M>>({ method, args } satisfies StoreCall, { timeoutMs: CALL_TIMEOUT_MS })
    } catch (error) {
      throw error instanceof ThreadError ? this.#storeError(error) : error
    }
  }

  close(): Promise<void> {
    return this.#thread.close(CLOSE_TIMEOUT_MS)
  }

  #storeError({ reason, message, thrown }: ThreadError): ConsoleStoreError {
    if (reason === 'thrown') return new ConsoleStoreError(typeof thrown?.code === 'string' ? thrown.code : null, message)
    if (reason === 'timeout') return new ConsoleStoreError('down', 'the store does not answer')
    const cause = reason === 'closed' ? 'the gateway is about to end' : message
    return new ConsoleStoreError('down', `${this.#name} cannot be used: ${cause}`)
  }
}
