import type { Logger } from 'pino'
import { keyFileOf } from '../auth/key-file.ts'
import { KeyStore } from '../auth/key-store.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/types.ts'

/** Opens the store of keys that are created at run time; null = there is no ledger. If the store fails, the failure is only logged. */
export function openStoredKeys({ ledger, keys, groups }: Config, clock: Clock, log: Logger): KeyStore | null {
  if (ledger === null) return null
  const file = keyFileOf(ledger.file)
  const store = new KeyStore({
    file, clock,
    onFailure: why => log.error({ file, why }, 'stored keys cannot be read: the keys read before stay active'),
    onRecovered: () => log.warn({ file }, 'the stored keys can be read again'),
  })
  const configured = new Set(keys.map(({ name }) => name))
  for (const { name, group } of store.keys()) {
    if (group !== undefined && !groups.has(group)) {
      log.warn({ key: name, group, file }, 'the group of a stored key is not configured: no group limits apply to the key; add it under groups')
    }
    if (configured.has(name)) {
      log.warn({ key: name, file }, 'a stored key has the same name as a configured key: they share their limits and counts')
    }
  }
  return store
}
