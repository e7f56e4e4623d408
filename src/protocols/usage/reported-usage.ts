import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { JsonCursor } from '../json/cursor.ts'
import { withoutByteOrderMark } from '../json/json-text.ts'
import { member } from '../json/read-members.ts'
import { Figures } from './usage-figures.ts'
import { blankUsage, type Usage } from './usage.ts'

export interface ReportedUsage {
  readonly usage: Usage
  /** A figure was impossible and reads as null, or figures contradict each other. */
  readonly suspect: boolean
  /** Absent: all usage belongs to the requested model. */
  readonly servingModels?: ServingModels
}

/** The models that made a response, if models other than the requested one took part. */
export interface ServingModels {
  /** null = the requested model served the request. */
  readonly servedBy: string | null
  /** Usage of further models, in addition to the main figures. */
  readonly others: readonly ModelUsage[]
}

export interface ModelUsage {
  readonly model: string | null
  readonly usage: Usage
}

export interface UsageReader {
  /** @param final false = the response was still in progress */
  readonly read: (usage: JsonObject, figures: Figures, final: boolean) => Usage
  /** Absent: the requested model always made the response. */
  readonly servingModels?: (usage: JsonObject, figures: Figures) => ServingModels | null
  /** Reads a whole body; absent: the member `usage` is read. */
  readonly readBody?: (cursor: JsonCursor) => ReportedUsage | null
}

const USAGE = Buffer.from('usage')

/**
 * Reads a usage object. A value of another type is suspect and has no figures; null = absent or null.
 * @param reader null = the endpoint has no usage (counting tokens, listing models)
 * @param final false = the response was still in progress
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
 * Reads the usage of a whole, successful response; null = no usage, for example because the body is not JSON.
 * Parses only the usage object: a body can be hundreds of megabytes of base64. @param body decompressed; may be one JSON array
 */
export function readBodyUsage(reader: UsageReader | null, body: Buffer): ReportedUsage | null {
  if (reader === null) return null
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  return reader.readBody ? reader.readBody(cursor) : readUsage(reader, member(cursor, USAGE))
}
