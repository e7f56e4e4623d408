import { asObject, type JsonObject } from './json.ts'
import { TranslationReport } from './report.ts'
import { NEUTRAL_FIELDS, type NeutralField } from './request.ts'
import type { FieldRule, FieldTable, SupportTable } from './translation.ts'

const NAMES: ReadonlySet<string> = new Set(NEUTRAL_FIELDS)

/**
 * What happens to a field. `partly`: some values are dropped. `ignored`: it concerns only the connection between
 * client and gateway.
 */
export type FieldOutcome = 'mapped' | 'partly' | 'dropped' | 'refused' | 'ignored'

/** The neutral field of a rule; null = none. */
function neutralFieldOf(rule: FieldRule): NeutralField | null {
  return typeof rule === 'string' && NAMES.has(rule) ? rule as NeutralField : null
}

/** What happens to a field at an upstream. Values listed in `unless` have no effect. */
export function outcomeOf(rule: FieldRule, support: SupportTable): FieldOutcome {
  if (typeof rule !== 'string') return rule.to
  return rule === 'dropped' || rule === 'ignored' ? rule : support[rule]
}

/** Starts the report of dropped fields. @param fields of the client's protocol */
export function startReport(fields: FieldTable): TranslationReport {
  const paths = new Map<NeutralField, string>()
  for (const [path, rule] of Object.entries(fields)) {
    const field = neutralFieldOf(rule)
    if (field !== null && !paths.has(field)) paths.set(field, path)
  }
  return new TranslationReport(paths, namesOf(fields).parents)
}

/**
 * Reports the fields of the body that the target does not get. A path in the table such as `generationConfig.topK`
 * makes the check enter that object.
 *
 * @throws GatewayError not_translatable
 */
export function reportFields(body: JsonObject, fields: FieldTable, support: SupportTable, report: TranslationReport): void {
  reportMembers(body, '', { fields, ...namesOf(fields), support, report })
}

interface FieldNames {
  /** The paths of the objects whose members are fields, including the body. */
  readonly parents: ReadonlySet<string>
  /** The last parts of all paths. Other names have no path to look up, and a body can have very many of them. */
  readonly names: ReadonlySet<string>
}

/** The names of each table, computed once. */
const FIELD_NAMES = new WeakMap<FieldTable, FieldNames>()

function namesOf(fields: FieldTable): FieldNames {
  const known = FIELD_NAMES.get(fields)
  if (known !== undefined) return known
  const paths = Object.keys(fields)
  const parents = new Set(['', ...paths.flatMap(path => path.includes('.') ? [path.slice(0, path.lastIndexOf('.'))] : [])])
  const names = new Set([...paths, ...parents].map(path => path.slice(path.lastIndexOf('.') + 1)))
  FIELD_NAMES.set(fields, { parents, names })
  return { parents, names }
}

interface FieldCheck extends FieldNames {
  readonly fields: FieldTable
  readonly support: SupportTable
  readonly report: TranslationReport
}

function reportMembers(object: JsonObject, prefix: string, check: FieldCheck): void {
  for (const name of Object.keys(object)) {
    const value = object[name]
    if (value === null || value === undefined) continue
    const path = prefix + name
    if (!check.names.has(name)) {
      check.report.drop(path)
      continue
    }
    const inner = check.parents.has(path) ? asObject(value) : null
    if (inner === null) reportField(path, value, check)
    else reportMembers(inner, `${path}.`, check)
  }
}

function reportField(path: string, value: unknown, { fields, support, report }: FieldCheck): void {
  const rule = Object.hasOwn(fields, path) ? fields[path] as FieldRule : 'dropped'
  if (typeof rule !== 'string') {
    if (rule.unless?.some(harmless => JSON.stringify(harmless) === JSON.stringify(value))) return
    if (rule.to === 'refused') report.refuse(path, rule.why ?? 'this cannot be translated')
  }
  if (outcomeOf(rule, support) === 'dropped') report.drop(path)
}
