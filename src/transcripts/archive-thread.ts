import { parentPort, workerData } from 'node:worker_threads'
import type { FromArchive, ToArchive } from './messages.ts'
import { TranscriptStore } from './store.ts'

/** The thread behind archive.ts; workerData is the file's path. */

/** Milliseconds. */
const SWEEP_EVERY = 60_000

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const store = new TranscriptStore(workerData as string)
const sweep = (): void => {
  try {
    while (store.expire(Date.now()));
  } catch {
    // Somebody else writes, or the disk is full: the next sweep finds the same ones.
  }
}
sweep()
const timer = setInterval(sweep, SWEEP_EVERY)

port.on('message', (message: ToArchive) => {
  if (message.kind === 'close') {
    clearInterval(timer)
    store.close()
    port.close()
    return
  }
  port.postMessage(message.kind === 'keep' ? keep(message) : find(message))
})

function keep({ transcript, size }: Extract<ToArchive, { kind: 'keep' }>): FromArchive {
  try {
    store.add(transcript)
    return { kind: 'kept', size, error: null }
  } catch (error) {
    return { kind: 'kept', size, error: messageOf(error) }
  }
}

function find({ id, requestId }: Extract<ToArchive, { kind: 'find' }>): FromArchive {
  try {
    return { kind: 'found', id, transcripts: store.find(requestId, Date.now()) }
  } catch (error) {
    return { kind: 'failed', id, error: messageOf(error) }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
