import { resolve } from 'node:path'
import type { RawUpstream } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { Upstream, UpstreamTls } from '../types.ts'
import { checkCertificates, checkKeyPair } from './pem.ts'

/** @param directory file names are relative to it @param path of the upstream */
export function buildTls({ ca: own, tls: raw = {}, url }: RawUpstream, directory: string, path: Path, findings: Findings): Pick<Upstream, 'ca' | 'tls'> {
  const at = (key: string): Path => [...path, 'tls', key]
  if (own !== undefined && raw.ca !== undefined) findings.error(at('ca'), 'the upstream has a ca already; remove one of them', 'key')
  const name = own ?? raw.ca
  const ca = name === undefined ? null : resolve(directory, name)
  if (ca !== null) checkCertificates(ca, own === undefined ? at('ca') : [...path, 'ca'], findings)
  const pair = buildPair(raw, directory, at, findings)
  if (findings.has([...path, 'tls']) && url !== undefined && URL.parse(url)?.protocol === 'http:') {
    findings.error([...path, 'tls'], 'the url is not https, so no certificate is shown or checked', 'key')
  }
  const { server_name: serverName = null } = raw
  return { ca, tls: pair === null && serverName === null ? null : { pair, serverName } }
}

function buildPair(
  raw: NonNullable<RawUpstream['tls']>, directory: string, at: (key: string) => Path, findings: Findings,
): UpstreamTls['pair'] {
  const { passphrase = null } = raw
  const missing = (['cert', 'key'] as const).find(key => raw[key] === undefined && !findings.has(at(key)))
  const given = (['cert', 'key', 'passphrase'] as const).find(key => findings.has(at(key)))
  if (missing !== undefined && given !== undefined) findings.error(at(given), `${given} needs ${missing} beside it`, 'key')
  if (raw.cert === undefined || raw.key === undefined) return null
  const [cert, key] = [resolve(directory, raw.cert), resolve(directory, raw.key)]
  checkCertificates(cert, at('cert'), findings)
  checkKeyPair(cert, key, at('key'), findings, passphrase)
  return { cert, key, passphrase }
}
