import { hostname } from 'node:os'
import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { RawConfig, RawValkey } from './raw.ts'
import type { Address, ClusterConfig, ValkeyAddress } from './types.ts'
import { timerDurationOf } from './values.ts'

const DEFAULT_VALKEY_TIMEOUT_MS = 100

/** @param listen where this gateway listens, for its name */
export function buildCluster(raw: RawConfig, listen: Address, findings: Findings): ClusterConfig | null {
  const { cluster, ledger } = raw
  if (cluster === undefined) return null
  const path = ['cluster', 'postgres']
  if (cluster.postgres !== undefined) checkPostgresUrl(cluster.postgres, path, findings)
  if (cluster.limits_offline !== undefined && cluster.valkey === undefined) {
    findings.error(['cluster', 'limits_offline'], 'without cluster.valkey no limits are shared', 'key')
  }
  if (cluster.postgres !== undefined && ledger === undefined) {
    findings.error(path, 'cluster.postgres needs ledger.file: each request is written there before it is sent to PostgreSQL', 'key')
  }
  return {
    valkey: cluster.valkey === undefined ? null : valkeyAddress(cluster.valkey, findings),
    postgres: cluster.postgres ?? null,
    limitsOffline: cluster.limits_offline ?? 'share',
    valkeyTimeout: timerDurationOf(cluster.valkey_timeout, ['cluster', 'valkey_timeout'], DEFAULT_VALKEY_TIMEOUT_MS, findings),
    instance: cluster.instance ?? `${hostname()}:${listen.port}`,
  }
}

function valkeyAddress(valkey: RawValkey, findings: Findings): ValkeyAddress {
  const path = ['cluster', 'valkey']
  if (typeof valkey === 'string') {
    checkValkeyUrl(valkey, path, findings)
    return { url: valkey }
  }
  const [name, urls] = 'cluster' in valkey ? ['cluster', valkey.cluster] : ['sentinels', valkey.sentinels]
  for (const [n, url] of urls.entries()) checkValkeyUrl(url, [...path, name, n], findings)
  return valkey
}

function checkValkeyUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  if (url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)) return
  findings.error(path, 'this is not a URL such as redis://user:password@host:6379/0, or rediss:// for TLS')
}

function checkPostgresUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  const isPostgres = url !== null && /^postgres(ql)?:$/.test(url.protocol)
  if (isPostgres && url.pathname.length > 1) return
  findings.error(path, 'this is not a URL such as postgres://user:password@host:5432/database')
}
