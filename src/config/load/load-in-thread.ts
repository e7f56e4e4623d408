import { startThread } from '../../base/threads/supervised-thread.ts'
import { threadUrl } from '../../base/threads/thread-url.ts'
import { deserializeConfig, type LoadMessage } from './load-message.ts'
import type { LoadedConfig } from './load.ts'
import { ConfigError } from '../problem.ts'

/**
 * Reloads a configuration in a thread, with the environment of the process. A thread is used because thousands of keys or routes take more
 * than a second, and streams must not block for so long.
 * @throws ConfigError like `reloadConfig`; another error if the thread fails
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
