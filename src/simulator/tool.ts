import { list, member, record, string, type Json } from './json.ts'

export interface Tool {
  readonly name: string
  /** JSON Schema of the arguments. */
  readonly schema: Json
}

export interface ToolCall {
  readonly name: string
  /** JSON text. */
  readonly arguments: string
  readonly tokens: number
}

/**
 * Creates a call of one tool, with arguments that its schema accepts: the required properties, or all properties if none is required.
 *
 * @param tools the tools of the request
 * @param name the tool to call; '' = the first tool
 */
export function callTool(tools: readonly Tool[], name: string): ToolCall {
  const tool = tools.find(one => one.name === name) ?? (name === '' ? tools[0] : undefined)
  const text = JSON.stringify(tool === undefined ? {} : sample(tool.schema, 0))
  const called = tool?.name ?? (name || 'simulated_tool')
  return { name: called, arguments: text, tokens: Math.ceil(text.length / 4) }
}

/** The arguments of a call in pieces of a few bytes, for a stream. */
export function argumentPieces(call: ToolCall): string[] {
  return call.arguments.match(/[^]{1,8}/gu) ?? []
}

/** Reads a tool of the chat, responses or messages protocol. Each protocol has the parts of a tool in other places. */
export function readTool(value: unknown): Tool {
  const tool = record(value)
  const inner = 'function' in tool ? record(tool['function']) : tool
  return {
    name: string(inner['name']),
    schema: record(inner['parameters'] ?? inner['input_schema'] ?? member(inner, 'parametersJsonSchema')),
  }
}

/** The tools that have a name. The provider itself runs the other tools. */
export function readTools(values: unknown): Tool[] {
  return list(values).map(readTool).filter(tool => tool.name !== '')
}

function sample(schema: Json, depth: number): unknown {
  const choices = list(schema['enum'])
  if (choices.length > 0) return choices[0]
  const types = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  switch (string(types[0]).toLowerCase()) {
    case 'string': return 'w1'
    case 'integer':
    case 'number': return 1
    case 'boolean': return true
    case 'array': return []
    case 'null': return null
    default: return sampleObject(schema, depth)
  }
}

function sampleObject(schema: Json, depth: number): Json {
  // Stop below the depth of any real tool: a hostile schema must not exhaust the stack.
  if (depth > 16) return {}
  const properties = record(schema['properties'])
  const all = Object.keys(properties)
  const required = list(schema['required'])
  const names = required.length > 0 ? all.filter(name => required.includes(name)) : all
  return Object.fromEntries(names.map(name => [name, sample(record(properties[name]), depth + 1)]))
}
