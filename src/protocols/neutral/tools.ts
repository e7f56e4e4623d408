import { MAX_JSON_DEPTH } from '../../base/json-size.ts'
import { argumentsObject, type JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { Tool, ToolCallPart, ToolResultPart } from './request.ts'

/** Maximum characters of a tool's name in a heading, because each result repeats the name. */
const MAX_NAME_IN_TEXT = 128

export function namedTools(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  const allowed = new Set(names)
  return tools.filter(({ name }) => allowed.has(name))
}

/** The heading of a tool result, or of media in a result, if the protocol accepts them only as user content. */
export function resultHeading({ name }: ToolResultPart): string {
  return `Result of the tool ${name.slice(0, MAX_NAME_IN_TEXT)}:`
}

/**
 * Parses the arguments of a call, for protocols that require an object.
 * @throws GatewayError not_translatable if the arguments are too deep
 */
export function writeArguments({ arguments: text, path }: ToolCallPart, report: TranslationReport): JsonObject {
  return argumentsObject(text, () => report.refuse(path, `the arguments of a call are nested more than ${MAX_JSON_DEPTH} levels deep`))
}
