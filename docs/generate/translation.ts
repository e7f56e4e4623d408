import { PROTOCOLS } from '../../src/protocols/index.ts'
import { outcomeOf } from '../../src/protocols/neutral/fields.ts'
import type { FieldRule, UpstreamSide } from '../../src/protocols/neutral/translation.ts'
import { code, generatedFrom, table } from './markdown.ts'

interface Target {
  readonly name: string
  readonly upstream: UpstreamSide
}

/** docs/reference/translation.md: what becomes of each field of a request at each protocol, from the tables of the protocols. */
export function translationPage(): string {
  const targets = PROTOCOLS.flatMap(({ name, translation }) => translation?.upstream ? [{ name, upstream: translation.upstream }] : [])
  const sections = PROTOCOLS.flatMap(({ name, translation }) => translation?.client
    ? [section(name, Object.entries(translation.client.fields), targets.filter(target => target.name !== name))] : [])
  return `${generatedFrom('the field tables in src/protocols')}

# Translated fields

What becomes of each field of a request that is [translated](../translation.md) to an upstream of another protocol.

| Word | Meaning |
|---|---|
| mapped | The upstream gets it, under its own name |
| partly | The upstream gets it. A value without a counterpart is dropped, and \`x-gateway-dropped\` names it |
| dropped | The upstream does not get it, and \`x-gateway-dropped\` names it. With \`translate: strict\` the request gets a 400 |
| refused | The request gets a 400, because the response would be another one |
| ignored | It concerns the connection to the gateway, or says what is the case anyway |

A word alone is true of each target. A field that is not in a table is dropped and named.

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
