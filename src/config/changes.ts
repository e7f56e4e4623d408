import { isObject } from '../base/is-object.ts'
import type { Config } from './types.ts'

/**
 * The differences between two configurations: `routes: changed`, `upstreams.openai: added`. Values are not included, because they can be
 * secrets.
 */
export function configChanges(before: Config, after: Config): string[] {
  const { file: _file, text: _text, ...sections } = after
  return (Object.keys(sections) as (keyof typeof sections)[]).flatMap(name => {
    const [old, current] = [entriesOf(before[name]), entriesOf(after[name])]
    if (old === null || current === null) return jsonOf(before[name]) === jsonOf(after[name]) ? [] : [`${name}: changed`]
    return [...new Set([...old.keys(), ...current.keys()])].flatMap(entry => {
      const change = !old.has(entry) ? 'added' : !current.has(entry) ? 'removed' : old.get(entry) === current.get(entry) ? null : 'changed'
      return change === null ? [] : [`${name}.${entry}: ${change}`]
    })
  })
}

/** The named entries of a section, as JSON; null = the section has no named entries. */
function entriesOf(section: unknown): Map<string, string> | null {
  if (section instanceof Map) return new Map(Array.from(section as Map<string, unknown>, ([name, value]) => [name, jsonOf(value)]))
  if (!Array.isArray(section)) return null
  const named = section as readonly { readonly name?: unknown }[]
  if (!named.every(({ name }) => typeof name === 'string')) return null
  return new Map(named.map(each => [String(each.name), jsonOf(each)]))
}

/** The value as JSON. Members are sorted, because their order has no meaning. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    // Skip the models of upstreams: they are compared as a separate section.
    const isOwn = ([name]: [string, unknown]): boolean => name !== 'models' || !(isObject(each) && 'versionHeader' in each)
    if (each instanceof Map) return [...each as Map<unknown, unknown>]
    if (typeof each === 'bigint') return String(each)
    return isObject(each) ? Object.fromEntries(Object.entries(each).filter(isOwn).sort(([a], [b]) => (a < b ? -1 : 1))) : each
  }) ?? ''
}
