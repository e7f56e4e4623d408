import { parentPort, workerData } from 'node:worker_threads'
import { serializeConfig, type LoadMessage } from './load-message.ts'
import { reloadConfig } from './load.ts'
import { ConfigError } from '../problem.ts'

/** load-in-thread.ts starts this thread, with the path of the file as `workerData`. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

port.postMessage(loadMessage(workerData as string))

function loadMessage(file: string): LoadMessage {
  try {
    return serializeConfig(reloadConfig(file, process.env))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { problems: error.problems, files: error.files, text: error.text }
  }
}
