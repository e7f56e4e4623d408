import type { Logger } from 'pino'
import { keyFileOf } from '../auth/key-file.ts'
import { KeyStore } from '../auth/key-store.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'

/**
 * The keys that are made at run time, in a store beside the ledger. The gateway
 * works without it: what is wrong with it is only logged.
 *
 * @returns null where the configuration names no ledger
 */
export function openStoredKeys({ ledger, keys }: Config, clock: Clock, log: Logger): KeyStore | null {
  if (ledger === null) return null
  const file = keyFileOf(ledger.file)
  const store = new KeyStore({
    file,
    clock,
    onFailure: why => log.error(
      { file, why }, 'stored keys cannot be read: those known so far stay in force',
    ),
    onRecovered: () => log.warn({ file }, 'the stored keys can be read again'),
  })
  const configured = new Set(keys.map(({ name }) => name))
  for (const { name } of store.keys()) {
    if (configured.has(name)) {
      log.warn(
        { key: name, file },
        'a stored key has the name of a configured one: they share what their limits count',
      )
    }
  }
  return store
}
