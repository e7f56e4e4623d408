import { readSchema } from '../../src/config/json-schema.ts'
import type { JsonSchema } from '../../src/config/json-schema.ts'

const MAX_LINE = 130

/** src/config/raw-schema.ts: the types of the values in gateway.yaml, from gateway.schema.json. */
export function rawTypes(): string {
  const top = readSchema()
  // Definitions of texts and numbers stand where they are used.
  const isNamed = ({ type, anyOf, items }: JsonSchema): boolean =>
    type === 'object' || items?.type === 'object' || (anyOf ?? []).some(choice => choice.type === 'object')
  const named = Object.entries(top.definitions ?? {}).filter(([, schema]) => isNamed(schema)).map(([name]) => name)

  const typeOf = (schema: JsonSchema, indent: string): string => {
    if (schema.$ref !== undefined) {
      const name = schema.$ref.slice('#/definitions/'.length)
      const target = top.definitions?.[name]
      if (target === undefined) throw new Error(`gateway.schema.json has no ${schema.$ref}`)
      return named.includes(name) ? typeName(name) : typeOf(target, indent)
    }
    if (schema.anyOf) return [...new Set(schema.anyOf.map(choice => typeOf(choice, indent)))].join(' | ')
    if (schema.enum) return schema.enum.map(value => `'${value}'`).join(' | ')
    if (schema.items) return `(${typeOf(schema.items, indent)} | undefined)[]`
    if (schema.type === 'object') return objectType(schema, indent)
    if (Array.isArray(schema.type) && schema.type.includes('object')) return 'unknown'
    const types = [schema.type ?? []].flat().map(type => type === 'integer' ? 'number' : type)
    return types.join(' | ')
  }

  const objectType = ({ properties, additionalProperties }: JsonSchema, indent: string): string => {
    if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties, indent)} | undefined>`
    const members = membersOf(properties, `${indent}  `)
    const line = `{ ${members.join(', ')} }`
    if (line.length + indent.length < MAX_LINE && !line.includes('\n')) return line
    return `{\n${members.map(member => `${indent}  ${member}\n`).join('')}${indent}}`
  }

  const membersOf = (properties: JsonSchema['properties'] = {}, indent = ''): string[] => Object.entries(properties).map(([name, child]) =>
    `${/^[a-z]\w*$/.test(name) ? name : `'${name}'`}?: ${typeOf(child, indent)}`)

  /** In terms of an earlier definition that has the same members and one more, or in full. */
  const definitionOf = (name: string, index: number): string => {
    const own = membersOf(top.definitions?.[name]?.properties)
    for (const base of named.slice(0, index)) {
      const { properties } = top.definitions?.[base] ?? {}
      const members = membersOf(properties)
      const [extra = '', ...others] = Object.keys(properties ?? {}).filter((_, at) => !own.includes(members[at] ?? ''))
      if (own.length > 0 && members.length === own.length + 1 && others.length === 0) return `Omit<${typeName(base)}, '${extra}'>`
    }
    return typeOf(top.definitions?.[name] ?? {}, '')
  }

  const definitions = named.map((name, index) => `export type ${typeName(name)} = ${definitionOf(name, index)}`)
  return `// Generated from gateway.schema.json by npm run docs:generate. Do not edit.

/**
 * The file's values after the schema check: the types are right, but wrong values are left out, so any value may be
 * missing.
 */
export interface RawConfig ${objectType(top, '')}

${definitions.join('\n\n')}
`
}

function typeName(definition: string): string {
  return `Raw${definition.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`
}
