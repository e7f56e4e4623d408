import { hostname } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { fileIdentity } from '../../base/files/file-exists.ts'
import type { ClusterConfig, ValkeyAddress, ValkeyTls } from '../cluster-types.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { checkCertificates, checkKeyPair } from './pem.ts'
import type { RawCluster, RawConfig } from '../raw.ts'
import type { Address } from '../types.ts'
import { timerDurationOf } from './values.ts'

const DEFAULT_VALKEY_TIMEOUT_MS = 100

/** @param listen the default name of the gateway is made from this address @param directory file names are relative to this directory */
export function buildCluster(raw: RawConfig, listen: Address, directory: string, findings: Findings): ClusterConfig | null {
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
    valkey: valkeyAddress(cluster, directory, findings),
    postgres: cluster.postgres ?? null,
    limitsOffline: cluster.limits_offline ?? 'share',
    valkeyTimeout: timerDurationOf(cluster.valkey_timeout, ['cluster', 'valkey_timeout'], DEFAULT_VALKEY_TIMEOUT_MS, findings),
    instance: cluster.instance ?? `${hostname()}:${listen.port}`,
  }
}

function valkeyAddress({ valkey, valkey_tls: raw }: RawCluster, directory: string, findings: Findings): ValkeyAddress | null {
  const path = ['cluster', 'valkey']
  const [name, urls] = urlsOf(valkey)
  for (const [n, url] of urls.entries()) checkValkeyUrl(url, name === null ? path : [...path, name, n], findings)
  const encrypted = urls.filter(url => url.startsWith('rediss:')).length
  if (encrypted > 0 && encrypted < urls.length) findings.error(path, 'either all URLs begin with rediss://, or none', 'key')
  const tls = raw === undefined ? null : buildValkeyTls(raw, directory, findings)
  if (tls !== null && encrypted === 0) findings.error(['cluster', 'valkey_tls'], 'this needs cluster.valkey with rediss://', 'key')
  const servers = serversOf(valkey, urls)
  return servers && { ...servers, ...tls && { tls } }
}

function serversOf(valkey: RawCluster['valkey'], urls: readonly string[]): ValkeyAddress | null {
  if (valkey === undefined) return null
  if (typeof valkey === 'string') return { url: valkey }
  if (!('sentinels' in valkey)) return { cluster: urls }
  const { master = '', sentinel_password: password } = valkey
  return { sentinels: urls, master, ...password !== undefined && { sentinel_password: password } }
}

/** The name of the list in the configuration, and the list's URLs. No URLs if the schema refused the list. */
function urlsOf(valkey: RawCluster['valkey']): readonly [name: string | null, urls: readonly string[]] {
  if (valkey === undefined) return [null, []]
  if (typeof valkey === 'string') return [null, [valkey]]
  const [name, urls = []] = 'sentinels' in valkey ? ['sentinels', valkey.sentinels] : ['cluster', 'cluster' in valkey ? valkey.cluster : []]
  return [name, urls.filter(url => url !== undefined)]
}

function buildValkeyTls(raw: NonNullable<RawCluster['valkey_tls']>, directory: string, findings: Findings): ValkeyTls {
  const path = ['cluster', 'valkey_tls']
  const [ca = null, cert = null, key = null] = [raw.ca, raw.cert, raw.key].map(file => file === undefined ? null : resolve(directory, file))
  if (ca !== null) checkCertificates(ca, [...path, 'ca'], findings)
  if (cert === null && key === null) return { ca, pair: null }
  if (cert === null || key === null) {
    findings.error(path, 'cert and key belong together: one of them is missing', 'key')
    return { ca, pair: null }
  }
  checkCertificates(cert, [...path, 'cert'], findings)
  checkKeyPair(cert, key, [...path, 'key'], findings)
  return { ca, pair: { cert, key } }
}

const ESCAPES = 'in a password write %2F for /, %3F for ?, %23 for #, %40 for @ and %25 for %, or take it from ${NAME}'

/** Reports an error if the password in a URL has a character that must be escaped. @returns true if an error was reported */
function hasStrayPassword(text: string, url: URL | null, path: Path, findings: Findings): boolean {
  // Such a character ends the authority of the URL. The rest of the password, and the @, are then in the path, query or fragment.
  const isStray = url === null ? text.includes('@') : url.username + url.password === '' && (url.pathname + url.search + url.hash).includes('@')
  if (!isStray && (url === null || isDecodable(url.username + url.password))) return false
  findings.error(path, `this is not a valid URL: ${ESCAPES}`)
  return true
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function checkValkeyUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  if (hasStrayPassword(text, url, path, findings)) return
  if (url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)) return
  findings.error(path, 'this is not a URL such as redis://user:password@host:6379/0, or rediss:// for TLS')
}

function checkPostgresUrl(text: string, path: Path, findings: Findings): void {
  const url = URL.parse(text)
  if (hasStrayPassword(text, url, path, findings)) return
  const isPostgres = url !== null && /^postgres(ql)?:$/.test(url.protocol)
  if (!isPostgres || url.pathname.length <= 1) {
    return findings.error(path, 'this is not a URL such as postgres://user:password@host:5432/database')
  }
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = url.searchParams.get(name)
    if (file === null || (isAbsolute(file) && fileIdentity(file) !== null)) continue
    findings.error(path, `${name}=${file} is not the absolute path of a file`)
  }
}
