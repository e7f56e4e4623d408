import type { CallerGroups, CallerIssuer } from '../caller-types.ts'
import { didYouMean } from '../nearest.ts'
import type { RawCaller, RawConfig } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { checkSecureUrl } from './auth.ts'
import { isKnownGroup } from './groups.ts'
import { isReservedName } from './keys.ts'
import { buildLimits } from './limits.ts'
import { durationOf } from './values.ts'

const WHOLE = /^[^*]+$/
/** The first part of a path. */
const OWNER = /^[^*/]+\//
const NAMESPACE = /^[^*/]+(?:$|\/)/
const DEFAULT_JWKS_GRACE = 24 * 3_600_000
/** The asymmetric algorithms of the library jose. */
const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA', 'ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87',
]
/** Issuers that give tokens to everybody, and the claims that say whose they are, with the part of the value that must have no star. */
const PUBLIC_ISSUERS: readonly { readonly issuer: RegExp, readonly who: string, readonly owners: ReadonlyMap<string, RegExp> }[] = [
  {
    issuer: /^https:\/\/token\.actions\.githubusercontent\.com\/?$/, who: 'every repository of GitHub',
    owners: new Map([
      ['repository_owner', WHOLE], ['repository_owner_id', WHOLE], ['repository', OWNER], ['repository_id', WHOLE], ['enterprise', WHOLE],
      ['enterprise_id', WHOLE], ['sub', /^repo:[^*/]+\//], ['job_workflow_ref', OWNER],
    ]),
  },
  {
    issuer: /^https:\/\/gitlab\.com\/?$/, who: 'every project of GitLab',
    owners: new Map([
      ['namespace_path', NAMESPACE], ['namespace_id', WHOLE], ['project_path', OWNER], ['project_id', WHOLE], ['sub', /^project_path:[^*/]+\//],
    ]),
  },
  {
    issuer: /^https:\/\/accounts\.google\.com\/?$/, who: 'every account of Google',
    owners: new Map([['email', /@[^*@]+$/], ['hd', WHOLE], ['sub', WHOLE]]),
  },
]

/** Builds the issuers of callers' tokens. */
export function buildCallers(raw: RawConfig, findings: Findings): CallerIssuer[] {
  const lines = new Map<string, number>()
  return (raw.callers ?? []).flatMap((caller, index) => {
    if (caller === undefined) return []
    const path = ['callers', index]
    const { name } = caller
    if (name !== undefined) {
      const before = lines.get(name)
      if (before !== undefined) findings.error([...path, 'name'], `the issuer on line ${before} has the same name; give each its own`)
      lines.set(name, before ?? findings.line([...path, 'name']))
      if (isReservedName(`${name}:`)) findings.error([...path, 'name'], `"${name}" is reserved; choose another name`)
      checkKeyNames(raw, name, findings)
    }
    if ((caller.keys ?? 0) > 0 && raw.console?.oidc?.callers !== true) {
      findings.warn([...path, 'keys'], 'callers make keys in the console, and it lets none log in; set console.oidc.callers: true', 'key')
    }
    return buildCaller(caller, path, Object.keys(raw.groups ?? {}), findings) ?? []
  })
}

function buildCaller(raw: RawCaller, path: Path, groupNames: readonly string[], findings: Findings): CallerIssuer | null {
  const { name, issuer, jwks = null } = raw
  if (issuer !== undefined) checkSecureUrl(issuer, [...path, 'issuer'], findings)
  if (jwks !== null) checkSecureUrl(jwks, [...path, 'jwks'], findings)
  const require = new Map<string, readonly string[]>()
  for (const [claim, value] of Object.entries(raw.require ?? {})) {
    const globs = listOf(value)
    if (globs.length > 0) require.set(claim, globs)
  }
  const groups = raw.groups === undefined ? null : buildGroupMap(raw.groups, [...path, 'groups'], groupNames, findings)
  if (!findings.has([...path, 'groups']) && require.size === 0) {
    findings.error(path, 'this needs groups or require: without both, every token of the issuer for this audience could call', 'key')
  }
  checkPublicIssuer(issuer, require, groups, path, findings)
  const audience = listOf(raw.audience)
  const algorithms = algorithmsOf(raw.algorithms, [...path, 'algorithms'], findings)
  const limits = buildLimits(raw.limits, [...path, 'limits'], findings)
  const { keys = 0 } = raw
  const jwksGrace = raw.jwks_grace === undefined ? DEFAULT_JWKS_GRACE : durationOf(raw.jwks_grace, [...path, 'jwks_grace'], findings, 0)
  if (name === undefined || issuer === undefined || audience.length === 0) return null
  return { name, issuer, audience, jwks, jwksGrace: jwksGrace ?? DEFAULT_JWKS_GRACE, algorithms, caller: raw.caller ?? 'sub', require, groups, limits, keys }
}

function buildGroupMap(raw: NonNullable<RawCaller['groups']>, path: Path, names: readonly string[], findings: Findings): CallerGroups {
  const map = new Map<string, string>()
  for (const [glob, group] of Object.entries(raw.map ?? {})) {
    if (group === undefined) continue
    const at = [...path, 'map', glob]
    if (isKnownGroup(group, names, at, findings)) map.set(glob, group)
  }
  const { default: fallback = null } = raw
  if (fallback !== null) isKnownGroup(fallback, names, [...path, 'default'], findings)
  if (!findings.has([...path, 'map']) && fallback === null) {
    findings.warn(path, 'no caller gets a group here, so every caller is refused; set map or default', 'key')
  }
  return { claim: raw.claim ?? 'groups', map, default: fallback }
}

function algorithmsOf(raw: RawCaller['algorithms'], path: Path, findings: Findings): readonly string[] {
  if (raw === undefined) return ALGORITHMS
  const algorithms = listOf(raw)
  for (const [index, algorithm] of algorithms.entries()) {
    const at = [...path, index]
    if (/^none$/i.test(algorithm)) findings.error(at, `"${algorithm}" is no signature: everybody could write such a token; remove it`)
    else if (/^HS\d+$/i.test(algorithm)) {
      findings.error(at, `${algorithm} signs with a shared secret, and the keys of an issuer are public; use one such as RS256 or ES256`)
    } else if (!ALGORITHMS.includes(algorithm)) {
      findings.error(at, `there is no algorithm "${algorithm}"${didYouMean(algorithm, ALGORITHMS)}; the algorithms are ${ALGORITHMS.join(', ')}`)
    }
  }
  return algorithms
}

function checkPublicIssuer(
  issuer: string | undefined, require: ReadonlyMap<string, readonly string[]>, groups: CallerGroups | null, path: Path, findings: Findings,
): void {
  const known = PUBLIC_ISSUERS.find(each => issuer !== undefined && each.issuer.test(issuer))
  if (known === undefined) return
  const namesOwner = (claim: string, globs: readonly string[]) => {
    const owner = known.owners.get(claim)
    return owner !== undefined && globs.length > 0 && globs.every(glob => owner.test(glob))
  }
  const isGrouped = groups !== null && groups.default === null && namesOwner(groups.claim, [...groups.map.keys()])
  if (isGrouped || [...require].some(([claim, globs]) => namesOwner(claim, globs))) return
  const claims = [...known.owners.keys()]
  findings.error([...path, 'issuer'], `${known.who} can get a token of this issuer, for any audience: require ${claims.slice(0, -1).join(', ')} or `
    + `${claims.at(-1)}, without a star in the name of the owner`)
}

/** A key with the name of a caller would share its budget. */
function checkKeyNames({ keys }: RawConfig, name: string, findings: Findings): void {
  for (const [index, key] of (keys ?? []).entries()) {
    if (key?.name?.startsWith(`${name}:`) !== true) continue
    findings.error(['keys', index, 'name'], `names that begin with "${name}:" belong to callers; choose another`)
  }
}

function listOf(value: string | readonly (string | undefined)[] | undefined): string[] {
  return [value ?? []].flat().filter(item => item !== undefined)
}
