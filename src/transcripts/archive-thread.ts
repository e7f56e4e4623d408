import { parentPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { messageOf } from '../base/message-of.ts'
import { decompressBody } from './decompress.ts'
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

// One after the other: what is asked for has been kept by then.
let done = Promise.resolve()
port.on('message', (message: ToArchive) => {
  done = done.then(() => handleMessage(port, message))
})

async function handleMessage(port: MessagePort, message: ToArchive): Promise<void> {
  if (message.kind === 'close') {
    clearInterval(timer)
    store.close()
    port.close()
    return
  }
  port.postMessage(message.kind === 'keep' ? await keep(message) : find(message))
}

async function keep(
  { transcript, packed, size }: Extract<ToArchive, { kind: 'keep' }>,
): Promise<FromArchive> {
  try {
    const answer = packed === null ? transcript.response : await decompressBody(transcript.response, packed)
    store.add({ ...transcript, response: answer })
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
