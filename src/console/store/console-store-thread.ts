import { workerData } from 'node:worker_threads'
import { serveThread } from '../../base/threads/thread-server.ts'
import type { StoreCall } from './console-store-client.ts'
import { ConsoleStore, type ConsoleStoreOptions } from './console-store.ts'

const store = new ConsoleStore(workerData as ConsoleStoreOptions)

serveThread<StoreCall>(
  ({ method, args }) => (store[method] as (...args: readonly unknown[]) => unknown).apply(store, [...args]),
  () => store.close(),
)
