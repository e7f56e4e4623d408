import { resolve } from 'node:path'
import { proxyFor, type ProxyRules } from '../../base/outgoing-proxy.ts'
import { isSecureUrl } from '../../base/secure-url.ts'
import type { HookConfig } from '../hook-types.ts'
import { didYouMean } from '../nearest.ts'
import type { RawConfig, RawHook } from '../raw.ts'
import type { Path } from '../text/document.ts'
import { formatPath, type Findings } from '../text/findings.ts'
import { checkCertificates } from './pem.ts'
import { checkQuotes, timerDurationOf } from './values.ts'

const DEFAULT_TIMEOUT_MS = 1_000
const MAX_TIMEOUT_MS = 60_000
const DEFAULT_CONCURRENCY = 64

/** @param directory file names are relative to it */
export function buildHooks({ hooks }: RawConfig, directory: string, proxy: ProxyRules | null, findings: Findings): Map<string, HookConfig> {
  const built = new Map<string, HookConfig>()
  for (const [name, hook] of Object.entries(hooks ?? {})) {
    if (hook !== undefined) built.set(name, buildHook(name, hook, directory, proxy, findings))
  }
  return built
}

function buildHook(name: string, raw: RawHook, directory: string, rules: ProxyRules | null, findings: Findings): HookConfig {
  const path = ['hooks', name]
  const tap = raw.tap ?? false
  const on = raw.on ?? ['request']
  if (tap && findings.has([...path, 'when_down'])) {
    findings.error([...path, 'when_down'], 'a tap decides nothing, so requests do not depend on it; remove when_down or tap', 'key')
  }
  if (on.includes('response') && !tap) {
    findings.error([...path, 'on'], 'only a hook with tap: true can get responses')
  }
  const timeout = timerDurationOf(raw.timeout, [...path, 'timeout'], DEFAULT_TIMEOUT_MS, findings)
  if (timeout > MAX_TIMEOUT_MS) findings.error([...path, 'timeout'], `${formatPath([...path, 'timeout'])} must be at most 60s`)
  const ca = raw.ca === undefined ? null : resolve(directory, raw.ca)
  if (ca !== null) checkCertificates(ca, [...path, 'ca'], findings)
  if (raw.secret !== undefined) checkQuotes(raw.secret, [...path, 'secret'], findings)
  const url = buildUrl(raw, path, findings)
  return {
    name, tap, timeout, ca, url,
    proxy: url === '' ? null : proxyFor(rules, new URL(url)),
    onRequest: on.includes('request'),
    onResponse: on.includes('response'),
    send: raw.send ?? 'metadata',
    whenDown: raw.when_down ?? 'refuse',
    concurrency: raw.concurrency ?? DEFAULT_CONCURRENCY,
    secret: raw.secret ?? null,
    all: raw.all ?? false,
  }
}

function buildUrl({ url: text, plain_http: allowsPlain }: RawHook, path: Path, findings: Findings): string {
  const url = text === undefined ? null : URL.parse(text)
  if (text === undefined) return ''
  const at = [...path, 'url']
  if (url === null || !/^https?:\/\/[^/\\]/i.test(text)) {
    findings.error(at, 'this is not an http or https URL such as https://dlp.internal/check')
    return ''
  }
  if (url.username !== '' || url.password !== '') findings.error(at, 'a URL must not contain credentials; calls are signed with secret')
  if (url.hash !== '') findings.error(at, 'a URL must not have a part from # on: it is not sent')
  if (!isSecureUrl(url) && allowsPlain !== true) {
    findings.error(at, 'prompts would be sent unencrypted: use https, or say plain_http: true if the network is private')
  }
  return url.href
}

/** The hooks of a route, a key or a group, by their names. Reports unknown ones. */
export function hookNames(
  names: readonly (string | undefined)[] | undefined, { hooks }: RawConfig, path: Path, findings: Findings,
): readonly string[] {
  const known = Object.keys(hooks ?? {})
  return (names ?? []).flatMap((name, at) => {
    if (name === undefined) return []
    if (known.includes(name)) return [name]
    findings.error([...path, at], `there is no hook "${name}"${didYouMean(name, known)}; hooks are defined under hooks`)
    return []
  })
}
