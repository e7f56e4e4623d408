import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { Tool, ToolChoice } from '../neutral/request.ts'
import { fullName, namespacedName, toolName } from './namespaces.ts'

/** The name of the tool search in protocols in which the search is an ordinary tool. */
export const TOOL_SEARCH = 'tool_search'

/** Tools that the client adds inside the conversation. Codex does this. */
export function addedTools(items: readonly BodyObject[]): readonly BodyObject[] {
  return items.flatMap(item => item.value('type') === 'additional_tools' || item.value('type') === 'tool_search_output' ? item.objects('tools') : [])
}

/** Reads tools. Of several tools with the same name only the last is kept, because targets refuse duplicates. */
export function readTools(tools: readonly BodyObject[]): Tool[] {
  return [...new Map(tools.flatMap(tool => readTool(tool)).map(tool => [tool.name, tool])).values()]
}

function readTool(tool: BodyObject, namespace: string | null = null): Tool[] {
  const type = tool.text('type')
  if (type === 'namespace') {
    const name = tool.text('name') ?? ''
    if (tool.text('description')) tool.drop('namespace.description')
    return tool.objects('tools').flatMap(inner => readTool(inner, name))
  }
  const isSearch = type === 'tool_search' && tool.value('execution') === 'client'
  if (type !== 'function' && type !== 'custom' && !isSearch) {
    // Drops a tool that the provider itself runs.
    tool.dropWhole(type)
    return []
  }
  // Has no effect: a target always gets all tools, so none is loaded later.
  tool.ignore('defer_loading')
  const namespaced = isSearch ? null : namespacedName(tool, namespace)
  const isFreeform = type === 'custom'
  return [{
    name: isSearch ? TOOL_SEARCH : namespaced === null ? tool.text('name') ?? '' : fullName(namespaced),
    namespaced, isToolSearch: isSearch, description: tool.text('description'), cache: null, path: 'tools[]',
    parameters: isFreeform ? null : tool.json('parameters'), strict: type === 'function' ? tool.boolean('strict') : null,
    freeform: isFreeform ? { format: tool.json('format') } : null,
  }]
}

/** The result of a tool search as text. The found tools themselves are added to the request's tools. */
export function foundTools(tools: readonly BodyObject[]): string {
  const names = readTools(tools).map(({ name }) => name)
  return names.length === 0 ? 'No tool was found.' : `Tools that can be called now: ${names.join(', ')}`
}

export function readToolChoice(body: BodyObject): ToolChoice | null {
  if (typeof body.value('tool_choice') === 'string') {
    const type = body.word('tool_choice', ['auto', 'none', 'required'])
    return type && { type }
  }
  const choice = body.object('tool_choice')
  if (choice === null) return null
  const type = choice.text('type')
  switch (type) {
    case 'function':
    case 'custom': return { type: 'tools', names: [toolName(choice)], isForced: true }
    case 'allowed_tools': {
      const names = choice.objects('tools').map(tool => {
        tool.ignore('type')
        return toolName(tool)
      }).filter(name => name !== '')
      return { type: 'tools', names, isForced: choice.value('mode') === 'required' }
    }
    default:
      // Drops the choice of a tool that the provider itself runs.
      choice.dropWhole(type)
      return null
  }
}
