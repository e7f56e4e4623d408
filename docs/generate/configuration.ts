import { readSchema } from '../../src/config/json-schema.ts'
import { code, generatedFrom, plain, table } from './markdown.ts'

/** The part of JSON Schema (draft 7) that gateway.schema.json is written in. */
interface Schema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly definitions?: Readonly<Record<string, Schema>>
}

/** Parts that several keys share: each has a section of its own. */
const SHARED: Readonly<Record<string, string>> = {
  timeouts: 'Timeouts', target: 'A target', limits: 'Limits of a key', budget: 'A budget', price: 'A price',
}

/** Forms of values that many keys share. */
const FORMS = ['address', 'duration', 'size', 'glob'] as const

/** docs/reference/configuration.md: every key of gateway.yaml, from gateway.schema.json. */
export function configurationPage(): string {
  const root: Schema = readSchema()
  const reader = new SchemaReader(root)
  const sections = Object.entries(root.properties ?? {}).map(([key, schema]) => reader.section(key, schema))
  const shared = Object.entries(SHARED).map(([name, title]) => reader.sharedSection(name, title))
  return `${generatedFrom('gateway.schema.json')}

# Configuration

Every key of \`gateway.yaml\`, with its values and its default.

${plain(root.description ?? '')}

- \`gateway check\` finds mistakes. For an unknown key it prints the line, the column and the nearest known key.
- An editor that supports YAML schemas completes and explains the keys, if the file begins with the first line that
  \`gateway init\` writes.
- In the tables, \`NAME\` is a name of your choice, and \`[]\` is an entry of a list.

## Values

${table(['Value', 'Form'], FORMS.map(name => reader.form(name)))}

${sections.join('\n\n')}

## Shared parts

${shared.join('\n\n')}
`
}

class SchemaReader {
  readonly #root: Schema

  constructor(root: Schema) {
    this.#root = root
  }

  section(key: string, schema: Schema): string {
    const whole = this.#resolve(schema)
    const rows = this.#rows(key, schema, new Set(this.#root.required).has(key), true)
    // The one row of a key without members says the same.
    const about = rows.length === 1 && rows[0]?.[0] === code(key) ? '' : plain(whole.description ?? '')
    return [`## ${code(key)}`, about, ...tableOf(rows)]
      .filter(part => part !== '').join('\n\n')
  }

  sharedSection(name: string, title: string): string {
    const schema = this.#root.definitions?.[name] as Schema
    const own = new Set(Object.keys(schema.properties ?? {}).map(code))
    const rows = this.#members('', schema).filter(([path = '']) => !repeats(path, own))
    return [`### ${title}`, plain(schema.description ?? ''), ...tableOf(rows)].filter(part => part !== '').join('\n\n')
  }

  /** The name of a form that values can have, and what it is. */
  form(name: string): string[] {
    const schema = this.#root.definitions?.[name] as Schema
    const { title = '', description = '', examples = [] } = schema
    const shown = examples.length === 0 ? '' : ` Examples: ${examples.map(each => code(text(each))).join(', ')}.`
    return [title, plain(description) + shown]
  }

  #resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema
    const found = this.#root.definitions?.[nameOf(schema.$ref)]
    if (found === undefined) throw new Error(`gateway.schema.json has no ${schema.$ref}`)
    return { ...found, ...schema }
  }

  /** One row for a key, and those of what is in it. */
  #rows(path: string, schema: Schema, required: boolean, isTop: boolean): string[][] {
    const whole = this.#resolve(schema)
    const row = [code(path), this.#type(schema), valueOf(whole, required), plain(whole.description ?? '')]
    const inner = this.#inner(path, schema)
    return isTop && inner.length > 0 ? inner : [row, ...inner]
  }

  #inner(path: string, schema: Schema): string[][] {
    if (this.#sharedName(schema) !== null) return []
    const whole = this.#resolve(schema)
    const { additionalProperties, items } = whole
    if (items?.properties !== undefined) return this.#members(`${path}[].`, items)
    if (typeof additionalProperties === 'object') {
      const each = this.#resolve(additionalProperties)
      return each.properties === undefined ? [] : this.#members(`${path}.NAME.`, each)
    }
    return this.#members(`${path}.`, whole)
  }

  #members(prefix: string, schema: Schema): string[][] {
    const required = new Set(schema.required)
    return Object.entries(schema.properties ?? {})
      .flatMap(([key, member]) => this.#rows(prefix + key, member, required.has(key), false))
  }

  #sharedName(schema: Schema): string | null {
    const name = schema.$ref === undefined ? null : nameOf(schema.$ref)
    return name !== null && name in SHARED ? name : null
  }

  #type(schema: Schema): string {
    const shared = this.#sharedName(schema)
    if (shared !== null) return `[${SHARED[shared]?.toLowerCase()}](#${slug(SHARED[shared] as string)})`
    const whole = this.#resolve(schema)
    if (whole.enum !== undefined) return whole.enum.map(value => code(String(value))).join(', ')
    if (whole.title !== undefined) return this.#linked(schema, plain(whole.title))
    if (whole.type === 'array') return whole.items?.properties ? 'list' : `list: ${this.#type(whole.items ?? {})}`
    if (whole.anyOf !== undefined) return whole.anyOf.map(each => this.#type(each)).join(' or ')
    const types = [whole.type ?? 'any'].flat()
    return types.map(type => TYPES[type] ?? type).join(' or ')
  }

  /** A destination is a target, or the name of an upstream. */
  #linked(schema: Schema, title: string): string {
    const isTarget = JSON.stringify(this.#resolve(schema)).includes('#/definitions/target')
    return isTarget ? `${title}: see [a target](#a-target)` : title
  }
}

/** Whether the row of a nested key says what the row of the same key outside says: `tiers[].input`. */
function repeats(path: string, own: ReadonlySet<string>): boolean {
  return path.replaceAll('`', '').split(/\[\]\.|\.NAME\./).slice(1).some(name => own.has(code(name)))
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text', integer: 'a whole number', number: 'number', boolean: '`true` or `false`', object: 'block', array: 'list',
}

function tableOf(rows: readonly string[][]): string[] {
  return rows.length === 0 ? [] : [table(['Key', 'Value', 'Default or example', 'Meaning'], rows)]
}

function valueOf(schema: Schema, required: boolean): string {
  if (schema.default !== undefined) return code(text(schema.default))
  const [example] = schema.examples ?? []
  const shown = example === undefined ? '' : `such as ${code(text(example))}`
  return [required ? 'required' : '', shown].filter(part => part !== '').join(', ')
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function nameOf(reference: string): string {
  return reference.slice('#/definitions/'.length)
}

function slug(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-')
}
