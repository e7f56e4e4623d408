import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { JsonCursor } from '../json/cursor.ts'
import { withoutByteOrderMark } from '../json/json-text.ts'
import { member } from '../json/read-members.ts'
import { Figures } from './usage-figures.ts'
import { blankUsage } from './usage.ts'
import type { Usage } from './usage.ts'

/** What an upstream reported, in the gateway's own terms. */
export interface ReportedUsage {
  readonly usage: Usage
  /** A figure was impossible and reads as null, or figures contradict each other. */
  readonly suspect: boolean
  /** Absent: all usage belongs to the requested model. */
  readonly servingModels?: ServingModels
}

/** The models that made a response, if other models than the requested one took part. */
export interface ServingModels {
  /** The model that served the request instead of the requested one; null = none. */
  readonly servedBy: string | null
  /** The usage of further models, in addition to the main figures. */
  readonly others: readonly ModelUsage[]
}

export interface ModelUsage {
  /** null = unknown. */
  readonly model: string | null
  readonly usage: Usage
}

/** Reads an endpoint's usage. */
export interface UsageReader {
  /** @param final false = the response was still in progress */
  readonly read: (usage: JsonObject, figures: Figures, final: boolean) => Usage
  /** The models that made the response; absent: always the requested one. */
  readonly servingModels?: (usage: JsonObject, figures: Figures) => ServingModels | null
  /** Reads a whole body; absent: its member `usage` is read. */
  readonly readBody?: (cursor: JsonCursor) => ReportedUsage | null
}

const USAGE = Buffer.from('usage')

/**
 * Reads a protocol's usage object. A value that is not an object is suspect and has no figures.
 *
 * @param reader null = the endpoint has no usage (counting tokens, listing models)
 * @param final false = the response was still in progress
 * @returns null = there is none
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
 * Reads the usage from a whole, successful response that was not streamed. It scans the top level of the body and
 * parses only the usage object: a body of hundreds of megabytes of base64 takes about as long as one search through
 * it.
 *
 * @param body decompressed; may be a stream as one JSON array
 * @returns null = the response reports nothing, for example because it is not JSON
 */
export function readBodyUsage(reader: UsageReader | null, body: Buffer): ReportedUsage | null {
  if (reader === null) return null
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  return reader.readBody ? reader.readBody(cursor) : readUsage(reader, member(cursor, USAGE))
}
