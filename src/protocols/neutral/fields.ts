import { asObject, type JsonObject } from './json.ts'
import { TranslationReport } from './report.ts'
import { NEUTRAL_FIELDS, type NeutralField } from './request.ts'
import type { FieldRule, FieldTable, SupportTable } from './translation.ts'

const NAMES: ReadonlySet<string> = new Set(NEUTRAL_FIELDS)

/** What happens to a field at an upstream, except for the values in `unless`. `partly`: some values of the field are dropped. */
export function outcomeOf(rule: FieldRule, support: SupportTable): 'mapped' | 'partly' | 'dropped' | 'refused' | 'ignored' {
  if (typeof rule !== 'string') return rule.to
  return rule === 'dropped' || rule === 'ignored' ? rule : support[rule]
}

/** Creates the report of dropped fields. @param fields all fields of the client's protocol */
export function startReport(fields: FieldTable): TranslationReport {
  const paths = new Map<NeutralField, string>()
  for (const [path, rule] of Object.entries(fields)) {
    if (typeof rule === 'string' && NAMES.has(rule) && !paths.has(rule as NeutralField)) paths.set(rule as NeutralField, path)
  }
  return new TranslationReport(paths, namesOf(fields).parents)
}

/**
 * Reports the fields of the body that the target does not get. Includes fields of nested objects if the table has their paths.
 *
 * @throws GatewayError not_translatable
 */
export function reportFields(body: JsonObject, fields: FieldTable, support: SupportTable, report: TranslationReport): void {
  reportMembers(body, '', { fields, ...namesOf(fields), support, report })
}

interface FieldNames {
  /** Paths of the objects whose members are fields. The path of the body is ''. */
  readonly parents: ReadonlySet<string>
  /**
   * The last parts of all paths. A member whose name is not in this set needs no look-up of its path: a body can have very many such
   * members.
   */
  readonly names: ReadonlySet<string>
}

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
