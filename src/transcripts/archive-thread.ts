import { workerData } from 'node:worker_threads'
import { serveThread } from '../base/threads/thread-server.ts'
import { decompressBody } from './decompress-captured.ts'
import type { Compression, Transcript } from './transcript.ts'
import { TranscriptStore } from './transcript-store.ts'

export type ArchiveRequest =
  | { readonly kind: 'keep'; readonly transcript: Transcript; readonly compression: Compression | null }
  | { readonly kind: 'find'; readonly requestId: string }

const SWEEP_INTERVAL_MS = 60_000

const store = new TranscriptStore(workerData as string)
const sweep = (): void => {
  try {
    while (store.expire(Date.now()));
  } catch {
    // Another process writes, or the disk is full. The next sweep deletes the expired transcripts.
  }
}
sweep()
const timer = setInterval(sweep, SWEEP_INTERVAL_MS)

serveThread<ArchiveRequest>(
  async request => {
    if (request.kind === 'find') return store.find(request.requestId, Date.now())
    const { transcript, compression } = request
    const { response } = transcript
    store.add(compression === null ? transcript : { ...transcript, response: await decompressBody(response, compression) })
    return null
  },
  () => {
    clearInterval(timer)
    store.close()
  },
)
