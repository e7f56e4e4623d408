import { hash } from 'node:crypto'
import type { CallerIssuer } from '../../config/caller-types.ts'
import { callerNameOf, claimAt, textAt, textsOf, type Claims } from './claims.ts'
import { tokenError } from './token-error.ts'

/** Seconds by which the clocks of issuer and gateway may differ. */
export const LEEWAY_S = 30

/** Longer than a value of attribution can be, which refuses it then. */
const MAX_CLAIM_LENGTH = 256

export interface VerifiedCaller {
  /** With the issuer's name before it. */
  readonly name: string
  /** null = none, and none is needed. */
  readonly group: string | null
  /** The claims that attribution reads, by path. */
  readonly claims: ReadonlyMap<string, string>
  /** The end of the token with leeway, ms since 1970. */
  readonly until: number
}

/** The digest under which a caller is blocked: no key has it, because keys have no line break. */
export function callerDigest(name: string): Buffer {
  return hash('sha256', `caller\n${name}`, 'buffer')
}

type Match = (text: string) => boolean
/** Compiles globs, of which one must match. */
export type CompileGlobs = (globs: readonly string[]) => Match

/** An issuer with its globs compiled. */
export interface CompiledIssuer extends Omit<CallerIssuer, 'require' | 'groups'> {
  /** Paths of claims to keep. */
  readonly kept: readonly string[]
  readonly require: readonly { readonly claim: string, readonly matches: Match }[]
  readonly groups: null | {
    readonly claim: string
    readonly map: readonly { readonly matches: Match, readonly group: string }[]
    readonly default: string | null
  }
}

/** @param kept paths of claims to keep */
export function compileIssuer(issuer: CallerIssuer, compile: CompileGlobs, kept: readonly string[] = []): CompiledIssuer {
  const { require, groups } = issuer
  return {
    ...issuer,
    kept,
    require: Array.from(require, ([claim, globs]) => ({ claim, matches: compile(globs) })),
    groups: groups && { ...groups, map: Array.from(groups.map, ([glob, group]) => ({ matches: compile([glob]), group })) },
  }
}

/** @param claims of a verified token @throws GatewayError token_claims, token_group */
export function callerOf(claims: Claims, issuer: CompiledIssuer): VerifiedCaller {
  for (const { claim, matches } of issuer.require) {
    if (!textsOf(claimAt(claims, claim)).some(matches)) throw tokenError('token_claims', `${issuer.name}: the claim ${claim} does not match require`)
  }
  const name = callerNameOf(claims, issuer.caller)
  if (name === null) throw tokenError('token_claims', `${issuer.name}: the claim ${issuer.caller} names no caller`)
  const kept = issuer.kept.flatMap(path => {
    const text = textAt(claims, path, MAX_CLAIM_LENGTH)
    return text === null ? [] : [[path, text] as const]
  })
  return { name: `${issuer.name}:${name}`, group: groupOf(claims, issuer), claims: new Map(kept), until: (Number(claims['exp']) + LEEWAY_S) * 1_000 }
}

function groupOf(claims: Claims, { name, groups }: CompiledIssuer): string | null {
  if (groups === null) return null
  const values = textsOf(claimAt(claims, groups.claim))
  const group = groups.map.find(({ matches }) => values.some(matches))?.group ?? groups.default
  if (group === null) throw tokenError('token_group', `${name}: no entry of groups.map matches the claim ${groups.claim}`)
  return group
}
