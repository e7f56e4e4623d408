import type { AttributionConfig, AttributionSource } from '../attribution-types.ts'
import { didYouMean } from '../nearest.ts'
import type { RawConfig } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { CREDENTIAL_NAME } from '../text/secrets.ts'
import { headerName } from './header.ts'

const DEFAULT_VALUES = 1000
/** The end user, in `require`. */
const USER = 'user'

export function buildAttribution({ attribution: raw }: RawConfig, findings: Findings): AttributionConfig | null {
  if (raw === undefined) return null
  const path = ['attribution']
  const user = sourcesOf(raw.user, [...path, 'user'], findings)
  for (const [at, { from }] of user.entries()) {
    if (from === 'key') findings.error([...path, 'user', at], 'a key has tags, and no end user; name another source')
  }
  const tags = Object.entries(raw.tags ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, sources]) => [name, sourcesOf(sources, [...path, 'tags', name], findings)] as const)
  const known = [...tags.map(([name]) => name), ...raw.user === undefined ? [] : [USER]]
  const required = (raw.require ?? []).flatMap((name, at) => {
    if (name === undefined) return []
    if (!known.includes(name)) {
      const what = name === USER ? 'attribution.user has no source' : `there is no tag "${name}"${didYouMean(name, known)}`
      findings.error([...path, 'require', at], `${what}; define it under attribution`)
    }
    return [name]
  })
  return { user, tags: new Map(tags), require: required, values: raw.values ?? DEFAULT_VALUES }
}

function sourcesOf(raw: readonly (string | undefined)[] | undefined, path: Path, findings: Findings): AttributionSource[] {
  return (raw ?? []).flatMap((text, at): AttributionSource[] => {
    if (text === undefined) return []
    if (text === 'body') return [{ from: 'body' }]
    if (text === 'hook') return [{ from: 'hook' }]
    if (text === 'key') return [{ from: 'key' }]
    if (text === 'header') return [{ from: 'tags' }]
    if (text.startsWith('claim:')) return [{ from: 'claim', name: text.slice('claim:'.length) }]
    const name = headerName(text.slice('header:'.length), [...path, at], findings)
    if (CREDENTIAL_NAME.test(name)) {
      findings.error([...path, at], 'this header can hold a credential, and the ledger would keep it; name another header')
    } else if (name.startsWith('content-') || name.startsWith('accept')) {
      findings.error([...path, at], 'this header describes the request and is sent upstream; name another header')
    }
    return [{ from: 'header', name }]
  })
}
