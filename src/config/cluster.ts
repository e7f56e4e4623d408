import { hostname } from 'node:os'
import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { RawConfig } from './raw.ts'
import type { Address, ClusterConfig } from './types.ts'

/** @param listen where this gateway listens, for its name */
export function buildCluster(raw: RawConfig, listen: Address, findings: Findings): ClusterConfig | null {
  const { cluster, ledger } = raw
  if (cluster === undefined) return null
  const path = ['cluster', 'postgres']
  if (cluster.postgres !== undefined) checkPostgresUrl(cluster.postgres, path, findings)
  if (cluster.postgres !== undefined && ledger === undefined) {
    findings.error(path, 'cluster.postgres needs ledger.file: each request is written there before it is sent to PostgreSQL', 'key')
  }
  return {
    postgres: cluster.postgres ?? null,
    instance: cluster.instance ?? `${hostname()}:${listen.port}`,
  }
}

function checkPostgresUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  const isPostgres = url !== null && /^postgres(ql)?:$/.test(url.protocol)
  if (isPostgres && url.pathname.length > 1) return
  findings.error(path, 'this is not a URL such as postgres://user:password@host:5432/database')
}
