import { parentPort, workerData } from 'node:worker_threads'
import { loadAgain } from './load.ts'
import { pack } from './load-message.ts'
import type { Parcel } from './load-message.ts'
import { ConfigError } from './problem.ts'

/** The loading thread; apart.ts starts it with the file's path, and is sent its Parcel. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

port.postMessage(parcel(workerData as string))

function parcel(file: string): Parcel {
  try {
    return pack(loadAgain(file, process.env))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { problems: error.problems, files: error.files }
  }
}
