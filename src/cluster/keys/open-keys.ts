import { fileExists } from '../../base/files/file-exists.ts'
import type { ClusterConfig } from '../../config/cluster-types.ts'
import { KeyFile } from '../../auth/key-file.ts'
import type { KeyWriter } from '../../auth/key-writer.ts'
import { SharedKeys } from './shared-keys.ts'

/** Opens the keys for changes. In a cluster, these are the keys of all gateways. @throws the errors of `KeyFile` */
export function openKeys(file: string, cluster: ClusterConfig | null): KeyWriter {
  if (cluster === null || cluster.postgres === null) return new KeyFile(file)
  return new SharedKeys({ url: cluster.postgres, name: `gateway keys of ${cluster.instance}` })
}

/** Opens the keys for changes without creating a file. @returns null = there are no keys */
export function openExistingKeys(file: string, cluster: ClusterConfig | null): KeyWriter | null {
  return (cluster?.postgres ?? null) === null && !fileExists(file) ? null : openKeys(file, cluster)
}
