import type { ConsoleStore } from './console-store.ts'

/** What the desk does, asked for from another thread. */
export type RemoteStore = {
  [Method in keyof ConsoleStore]: (...args: Parameters<ConsoleStore[Method]>) => Promise<Awaited<ReturnType<ConsoleStore[Method]>>>
}

export interface StoreCall {
  readonly id: number
  readonly method: keyof ConsoleStore
  readonly args: readonly unknown[]
}

export type StoreReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly fault: { readonly code: string | null; readonly message: string } }
