import type { Reply, Request } from '../limits/messages.ts'

/** Where a gateway listens. */
export interface Listening {
  readonly addresses: { readonly base: string; readonly console: string | null }
  readonly docs: string | null
}

/** From the supervisor to a worker. */
export type Order =
  | { readonly kind: 'drain' | 'close' | 'reload' }
  | { readonly kind: 'limits'; readonly replies: readonly Reply[] }

/** From a worker to the supervisor. */
export type Report =
  | { readonly kind: 'listening'; readonly listening: Listening }
  | { readonly kind: 'limits'; readonly requests: readonly Request[] }
