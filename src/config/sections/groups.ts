import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { Group } from '../key-types.ts'
import { buildLimits } from './limits.ts'
import { buildEdit } from './edits.ts'
import { checkNames } from './checks.ts'
import { hookNames } from './hooks.ts'
import { didYouMean } from '../nearest.ts'
import type { RawConfig } from '../raw.ts'
import { modelGlobs } from './routes.ts'

/** Builds the groups of keys. Each group contains all groups above it. */
export function buildGroups(raw: RawConfig, findings: Findings): Map<string, Group> {
  const given = raw.groups ?? {}
  const names = Object.keys(given)
  const parents = new Map<string, string>()
  for (const name of names) {
    const parent = given[name]?.parent
    if (parent === undefined) continue
    if (isKnownGroup(parent, names, ['groups', name, 'parent'], findings)) parents.set(name, parent)
  }
  for (const name of names) {
    const cycle = cycleFrom(name, parents)
    if (cycle === null) continue
    findings.error(['groups', name, 'parent'], `a group cannot be its own parent: ${cycle.join(' -> ')}`)
    // Report each cycle once.
    for (const member of cycle) parents.delete(member)
  }
  const groups = new Map<string, Group>()
  const members = new Map(names.map(name => [name, [] as string[]]))
  const build = (name: string): Group => {
    const known = groups.get(name)
    if (known !== undefined) return known
    const path = ['groups', name]
    const parent = parents.get(name)
    const above = parent === undefined ? [] : build(parent).chain
    const checks = checkNames(given[name]?.checks, raw, [...path, 'checks'], findings)
    const hooks = hookNames(given[name]?.hooks, raw, [...path, 'hooks'], findings)
    const edit = buildEdit(given[name]?.edit, [...path, 'edit'], findings)
    const group = {
      name, isGroup: true as const, parent: parent ?? null,
      models: modelGlobs(given[name]?.models, [...path, 'models'], findings),
      limits: buildLimits(given[name]?.limits, [...path, 'limits'], findings),
      members: members.get(name) ?? [],
      ...checks.length > 0 && { checks },
      ...hooks.length > 0 && { hooks },
      ...edit !== null && { edit },
    }
    const withChain: Group = { ...group, chain: [group, ...above] }
    for (const each of withChain.chain) members.get(each.name)?.push(name)
    groups.set(name, withChain)
    return withChain
  }
  for (const name of names) build(name)
  return groups
}

/** Reports an error if no group has the name. */
export function isKnownGroup(name: string, names: readonly string[], path: Path, findings: Findings): boolean {
  if (names.includes(name)) return true
  findings.error(path, `there is no group "${name}"${didYouMean(name, names)}; groups are defined under groups`)
  return false
}

/** The names on the path from a group back to the same group; null = no such path. */
function cycleFrom(name: string, parents: ReadonlyMap<string, string>): string[] | null {
  const way = [name]
  for (let at = parents.get(name); at !== undefined; at = parents.get(at)) {
    way.push(at)
    if (at === name) return way
    // The path has entered a cycle without this group. That cycle is reported for its own members.
    if (way.length > parents.size + 1) return null
  }
  return null
}
