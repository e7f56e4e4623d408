import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { deserializeConfig, type LoadMessage } from './load-message.ts'
import type { LoadedConfig } from './load.ts'
import { ConfigError } from '../problem.ts'

/**
 * Loads a configuration again, with the process's environment, in a thread: thousands of keys or routes take more than a
 * second, which must not block streams. @throws ConfigError like `reloadConfig`; another error if the thread fails
 */
export function loadConfigInThread(file: string): Promise<LoadedConfig> {
  return new Promise((resolve, reject) => {
    startThread<LoadMessage>({
      name: 'configuration',
      script: threadUrl('load-thread', import.meta.url),
      workerData: file,
      onMessage: parcel => {
        if ('loaded' in parcel) resolve(deserializeConfig(parcel.loaded, parcel.urls))
        else reject(new ConfigError(parcel.problems, parcel))
      },
      onExit: cause => reject(new Error(`the thread that read the configuration ended: ${cause}`)),
    })
  })
}
