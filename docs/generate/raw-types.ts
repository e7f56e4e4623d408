import { readSchema } from '../../src/config/json-schema.ts'
import type { JsonSchema } from '../../src/config/json-schema.ts'

const MAX_LINE = 130

/** src/config/raw-schema.ts: the types of the values in gateway.yaml, from gateway.schema.json. */
export function rawTypes(): string {
  const top = readSchema()
  // Definitions of texts and numbers stand where they are used.
  const isNamed = ({ type, anyOf }: JsonSchema): boolean =>
    type === 'object' || (anyOf ?? []).some(choice => choice.type === 'object')
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
    const types = [schema.type ?? []].flat().map(type => type === 'integer' ? 'number' : type)
    return types.join(' | ')
  }

  const objectType = ({ properties, additionalProperties }: JsonSchema, indent: string): string => {
    if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties, indent)} | undefined>`
    const members = Object.entries(properties ?? {}).map(([name, child]) =>
      `${/^[a-z]\w*$/.test(name) ? name : `'${name}'`}?: ${typeOf(child, `${indent}  `)}`)
    const line = `{ ${members.join(', ')} }`
    if (line.length + indent.length < MAX_LINE && !line.includes('\n')) return line
    return `{\n${members.map(member => `${indent}  ${member}\n`).join('')}${indent}}`
  }

  const definitions = named.map(name => `export type ${typeName(name)} = ${typeOf(top.definitions?.[name] ?? {}, '')}`)
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
