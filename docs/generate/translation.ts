import { PROTOCOLS } from '../../src/protocols/index.ts'
import { outcomeOf } from '../../src/protocols/neutral/fields.ts'
import type { FieldRule, UpstreamSide } from '../../src/protocols/neutral/translation.ts'
import { nestedOutcomes } from '../../test/support/sdk/nested-outcomes.ts'
import type { NestedRule } from '../../test/support/sdk/nested-outcomes.ts'
import { code, generatedFrom, table } from './markdown.ts'

interface Target {
  readonly name: string
  readonly upstream: UpstreamSide
}

/** docs/reference/translation.md: what becomes of each field of a request at each protocol, from the tables of the protocols. */
export function translationPage(): string {
  const targets = PROTOCOLS.flatMap(({ name, translation }) => translation?.upstream ? [{ name, upstream: translation.upstream }] : [])
  const nested: Readonly<Record<string, readonly NestedRule[]>> = nestedOutcomes()
  const sections = PROTOCOLS.flatMap(({ name, translation }) => {
    if (!translation?.client) return []
    const { fields } = translation.client
    const inner = (nested[name] ?? []).filter(({ parent, name: member }) => !Object.hasOwn(fields, `${parent}.${member}`))
    return [section(name, Object.entries(fields), targets.filter(target => target.name !== name)), ...nestedSection(inner)]
  })
  return `${generatedFrom('the field tables in src/protocols, and from the types of the vendors\' SDKs')}

# Translated fields

What becomes of each field of a request that is [translated](../translation.md) to an upstream of another protocol.

| Word | Meaning |
|---|---|
| mapped | The upstream gets it, under its own name |
| partly | The upstream gets it. A value without a counterpart is dropped, and \`x-gateway-dropped\` names it |
| dropped | The upstream does not get it, and \`x-gateway-dropped\` names it. With \`translate: strict\` the request gets a 400 |
| refused | The request gets a 400, because the response would be another one |
| ignored | It concerns the connection to the gateway, or says what is the case anyway |

A word alone is true of each target. A field that is not in a table is dropped and named. What no target gets of
messages, content and tools is in a table of its own, at one of the places where their object may be. A member of a wrong type gets a 400.

${sections.join('\n\n')}
`
}

function section(name: string, fields: readonly (readonly [path: string, rule: FieldRule])[], targets: readonly Target[]): string {
  const rows = fields.map(([path, rule]) => [fieldText(path, rule), outcomeText(rule, targets)])
  const reasons = fields.flatMap(([path, rule]) => (
    typeof rule !== 'string' && rule.why !== undefined ? [`- ${code(path)}: ${rule.why}.`] : []
  ))
  return [
    `## Requests of ${name}`, table(['Field', 'What becomes of it'], rows), 'Why a field is refused:', reasons.join('\n'),
  ].join('\n\n')
}

/** A word for all targets, or for each word its targets: a column for each target would be too wide for a phone. */
function outcomeText(rule: FieldRule, targets: readonly Target[]): string {
  const groups = Object.entries(Object.groupBy(targets, ({ upstream }) => outcomeOf(rule, upstream.support)))
  if (groups.length === 1) return groups[0]?.[0] ?? ''
  return groups.map(([outcome, group]) => `${outcome}: ${group.map(({ name }) => name).join(', ')}`).join('; ')
}

/** The field, and the values that change nothing. */
function fieldText(path: string, rule: FieldRule): string {
  const harmless = typeof rule === 'string' ? [] : rule.unless ?? []
  return harmless.length === 0 ? code(path) : `${code(path)} other than ${harmless.map(value => code(JSON.stringify(value))).join(', ')}`
}

/** Members of objects inside a request that no target gets, and objects that none gets. */
function nestedSection(rules: readonly NestedRule[]): readonly string[] {
  const whole = rules.filter(({ outcome, parent }) => outcome === 'whole' && parent.endsWith(']'))
  const members = Map.groupBy(rules.filter(({ outcome }) => outcome === 'dropped'), objectText)
  const rows = [
    ...[...members].map(([object, list]) => [object, list.map(({ name }) => code(name)).join(', ')]),
    ...[...Map.groupBy(whole, ({ parent }) => parent)]
      .map(([parent, list]) => [code(parent), `as a whole: ${[...new Set(list.map(({ kind }) => code(kind ?? '')))].join(', ')}`]),
  ]
  return rows.length === 0 ? [] : ['Inside it are dropped and named:', table(['Object', 'Members'], rows)]
}

function objectText({ parent, kind }: NestedRule): string {
  return kind === null ? code(parent) : `${code(parent)} ${code(kind)}`
}
