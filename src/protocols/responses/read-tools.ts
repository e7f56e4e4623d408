import { reportOthers } from '../neutral/fields.ts'
import { asBoolean, asList, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import { TranslationReport } from '../neutral/report.ts'
import type { Tool, ToolChoice } from '../neutral/request.ts'
import { fullName, namespacedName, toolName } from './namespaces.ts'

/** The name that a search for tools has in protocols where it is a tool as others are. */
export const TOOL_SEARCH = 'tool_search'

/** Items with tools that the model may call from then on. */
const ADDS_TOOLS: ReadonlySet<unknown> = new Set(['additional_tools', 'tool_search_output'])

/** Tools that the client adds in the conversation, as Codex does. */
export function addedTools(input: unknown): readonly unknown[] {
  return asList(input).map(asObject).flatMap(item => ADDS_TOOLS.has(item?.['type']) ? asList(item?.['tools']) : [])
}

/** Of two tools of one name the later one counts: targets refuse both. */
export function readTools(tools: readonly unknown[], report: TranslationReport): Tool[] {
  const read = tools.flatMap(tool => readTool(asObject(tool) ?? {}, report))
  return [...new Map(read.map(tool => [tool.name, tool])).values()]
}

/** Of a tool: every tool is loaded. */
const TOOL_MEMBERS = new Set(['type', 'name', 'description', 'parameters', 'strict', 'format', 'defer_loading'])

/** @param namespace that the tool is in; null = none */
function readTool(tool: JsonObject, report: TranslationReport, namespace: string | null = null): Tool[] {
  const path = 'tools[]'
  const namespaced = namespacedName(tool, namespace)
  const name = namespaced === null ? asText(tool['name']) ?? '' : fullName(namespaced)
  const base = { name, namespaced, isToolSearch: false, description: asText(tool['description']), cache: null, path }
  switch (tool['type']) {
    case 'namespace':
      if (base.description) report.drop(`${path}.namespace.description`)
      return asList(tool['tools']).flatMap(inner => readTool(asObject(inner) ?? {}, report, asText(tool['name']) ?? ''))
    case 'function':
      reportOthers(tool, TOOL_MEMBERS, path, report)
      return [{ ...base, parameters: asObject(tool['parameters']), strict: asBoolean(tool['strict']), freeform: null }]
    case 'tool_search': {
      if (tool['execution'] !== 'client') break
      return [{ ...base, name: TOOL_SEARCH, isToolSearch: true, parameters: asObject(tool['parameters']), strict: null, freeform: null }]
    }
    case 'custom':
      return [{ ...base, parameters: null, strict: null, freeform: { format: asObject(tool['format']) } }]
  }
  // A tool that the provider runs itself.
  report.drop(`${path}.${asText(tool['type']) ?? 'type'}`)
  return []
}

/** What the model reads of a search: the tools themselves are added to the request. */
export function foundTools(tools: readonly unknown[]): string {
  const names = tools.map(asObject).flatMap(tool => tool === null ? [] : readTool(tool, new TranslationReport(new Map()))).map(({ name }) => name)
  return names.length === 0 ? 'No tool was found.' : `Tools that can be called now: ${names.join(', ')}`
}

export function readToolChoice(value: unknown): ToolChoice | null {
  if (value === 'auto' || value === 'none' || value === 'required') return { type: value }
  const choice = asObject(value)
  switch (choice?.['type']) {
    case 'function':
    case 'custom':
      return { type: 'tools', names: [toolName(choice)], isForced: true }
    case 'allowed_tools': {
      const names = asList(choice['tools']).map(tool => toolName(asObject(tool) ?? {})).filter(name => name !== '')
      return { type: 'tools', names, isForced: choice['mode'] === 'required' }
    }
    default:
      return null
  }
}
