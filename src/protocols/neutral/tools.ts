import { MAX_JSON_DEPTH } from '../../base/json-size.ts'
import { argumentsObject, type JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { Tool, ToolCallPart, ToolResultPart } from './request.ts'

/** Maximum characters of a tool's name in a heading, which each result repeats. */
const MAX_NAME_IN_TEXT = 128

export function namedTools(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  const allowed = new Set(names)
  return tools.filter(({ name }) => allowed.has(name))
}

/** The heading for tool results, or media in them, that a protocol accepts only as user content. */
export function resultHeading({ name }: ToolResultPart): string {
  return `Result of the tool ${name.slice(0, MAX_NAME_IN_TEXT)}:`
}

/** For protocols that require an object. @throws GatewayError not_translatable if the arguments are too deep to write */
export function writeArguments({ arguments: text, path }: ToolCallPart, report: TranslationReport): JsonObject {
  return argumentsObject(text, () => report.refuse(path, `the arguments of a call are nested more than ${MAX_JSON_DEPTH} levels deep`))
}
