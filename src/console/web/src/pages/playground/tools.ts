/** A tool that the model can call. */
export interface Tool {
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/**
 * Reads definitions of tools in the format of any of the three vendors: `{ name, parameters }`, `{ type: function, function: { … } }`, or
 * `{ name, input_schema }`.
 *
 * @param text - a list in JSON; empty = no tools
 * @throws {SyntaxError} with a message that says what is wrong
 */
export function parseTools(text: string): Tool[] {
  if (text.trim() === '') return []
  const list = JSON.parse(text) as unknown
  if (!Array.isArray(list)) throw new SyntaxError('Enter a list: [ … ]')
  return list.map((item: unknown, index) => {
    const outer = objectOf(item)
    const tool = objectOf(outer?.['function']) ?? outer
    const name = tool?.['name']
    const parameters = objectOf(tool?.['parameters'] ?? tool?.['input_schema'] ?? tool?.['parametersJsonSchema'] ?? { type: 'object', properties: {} })
    if (typeof name !== 'string' || name === '') throw new SyntaxError(`Tool ${index + 1} has no name.`)
    if (parameters === null) throw new SyntaxError(`The parameters of ${name} are not an object.`)
    const description = tool?.['description']
    return { name, ...typeof description === 'string' && { description }, parameters }
  })
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : null
}
