import type { Desk } from './console-store.ts'

/** What the desk does, asked for from another thread. */
export type Remote = {
  [Method in keyof Desk]: (...args: Parameters<Desk[Method]>) => Promise<Awaited<ReturnType<Desk[Method]>>>
}

export interface Question {
  readonly id: number
  readonly method: keyof Desk
  readonly args: readonly unknown[]
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly fault: { readonly code: string | null; readonly message: string } }
