import type { Compression, Transcript } from './transcript.ts'

/** To the thread of the archive. */
export type ToArchive =
  | {
    readonly kind: 'keep'
    readonly transcript: Transcript
    readonly packed: Compression | null
    readonly size: number
  }
  | { readonly kind: 'find'; readonly id: number; readonly requestId: string }
  | { readonly kind: 'close' }

/** From it. */
export type FromArchive =
  | { readonly kind: 'kept'; readonly size: number; readonly error: string | null }
  | { readonly kind: 'found'; readonly id: number; readonly transcripts: readonly Transcript[] }
  | { readonly kind: 'failed'; readonly id: number; readonly error: string }
