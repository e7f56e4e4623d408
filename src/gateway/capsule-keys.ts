import { capsuleKeyFileOf } from '../auth/capsule-key-file.ts'
import { CapsuleKeyStore } from '../cluster/keys/capsule-key-store.ts'
import type { Config } from '../config/types.ts'
import type { GatewayParts } from '../pipeline/parts/gateway.ts'

/** Opens the keys of capsules: in a file beside the ledger, in PostgreSQL, or in memory. If the store fails, the failure is only logged. */
export function openCapsuleKeys({ ledger, cluster }: Config, { clock, log, capsuleKey }: GatewayParts): CapsuleKeyStore {
  const file = ledger && capsuleKeyFileOf(ledger.file)
  return new CapsuleKeyStore({
    file,
    url: cluster?.postgres ?? null,
    instance: cluster?.instance ?? '',
    first: capsuleKey ?? null,
    clock,
    onFailure: why => log.error({ file, why }, 'the keys of capsules cannot be read or kept: those known before stay active'),
    onRecovered: () => log.warn({ file }, 'the keys of capsules can be read and kept again'),
  })
}
