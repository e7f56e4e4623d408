import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { JsonCursor } from '../json/cursor.ts'
import { withoutByteOrderMark } from '../json/json-text.ts'
import { member } from '../json/read-members.ts'
import { Figures } from './usage-figures.ts'
import { blankUsage, type Usage } from './usage.ts'

export interface ReportedUsage {
  readonly usage: Usage
  /** true if a figure was impossible, and is null, or if figures contradict each other. */
  readonly suspect: boolean
  /** The models that made the response; absent = all usage belongs to the requested model. */
  readonly servingModels?: ServingModels
}

/** The models that made a response, for responses in which not only the requested model took part. */
export interface ServingModels {
  /** The model that served the request; null = the requested model. */
  readonly servedBy: string | null
  /** Usage of further models, which the main figures do not include. */
  readonly others: readonly ModelUsage[]
}

export interface ModelUsage {
  readonly model: string | null
  readonly usage: Usage
}

export interface UsageReader {
  /** @param final false = the response is still in progress */
  readonly read: (usage: JsonObject, figures: Figures, final: boolean) => Usage
  /** Reads which models made the response; absent = always the requested model. */
  readonly servingModels?: (usage: JsonObject, figures: Figures) => ServingModels | null
  /** Reads the usage from a whole body; absent = the member `usage` of the body is read. */
  readonly readBody?: (cursor: JsonCursor) => ReportedUsage | null
}

const USAGE = Buffer.from('usage')

/**
 * Reads a usage object; null = the value is absent or null. A value of another type is suspect and has no figures.
 * @param reader null = the endpoint reports no usage (counting tokens, listing models)
 * @param final false = the response is still in progress
 */
export function readUsage(reader: UsageReader | null, value: unknown, final = true): ReportedUsage | null {
  if (!reader || value === undefined || value === null) return null
  if (!isObject(value)) return { usage: blankUsage(), suspect: true }
  const figures = new Figures()
  const usage = reader.read(value, figures, final)
  const servingModels = reader.servingModels?.(value, figures) ?? null
  return { usage, suspect: figures.suspect, ...servingModels && { servingModels } }
}

/**
 * Reads the usage of a whole, successful response; null = it has no usage, for example because the body is not JSON.
 * Parses only the usage object, because a body can contain hundreds of megabytes of base64.
 * @param body decompressed; may be one JSON array
 */
export function readBodyUsage(reader: UsageReader | null, body: Buffer): ReportedUsage | null {
  if (reader === null) return null
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  return reader.readBody ? reader.readBody(cursor) : readUsage(reader, member(cursor, USAGE))
}
