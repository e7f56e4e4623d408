import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { JsonCursor } from '../json/cursor.ts'
import { withoutByteOrderMark } from '../json/json-text.ts'
import { member } from '../json/read-members.ts'
import { Figures } from './usage-figures.ts'
import { blankUsage } from './usage.ts'
import type { Usage } from './usage.ts'

/** What an upstream reported, in the gateway's own vocabulary. */
export interface ReportedUsage {
  readonly usage: Usage
  /** A figure was nonsense and reads as null, or figures contradict each other. */
  readonly suspect: boolean
  /** Absent: all of it is of the model that was asked. */
  readonly servingModels?: ServingModels
}

/** The models that made a response, where it was not only the one that was asked. */
export interface ServingModels {
  /** The model that served it instead; null = none. */
  readonly servedBy: string | null
  /** What further ones used, beside the figures at the top. */
  readonly others: readonly ModelUsage[]
}

export interface ModelUsage {
  /** null = it is unknown which. */
  readonly model: string | null
  readonly usage: Usage
}

/** Reads an endpoint's usage. */
export interface UsageReader {
  /** @param final false while the response was still in progress when it was sent */
  readonly read: (usage: JsonObject, figures: Figures, final: boolean) => Usage
  /** The models that made the response; absent: always the one that was asked. */
  readonly servingModels?: (usage: JsonObject, figures: Figures) => ServingModels | null
  /** Reads a whole body; absent: its member `usage`. */
  readonly readBody?: (cursor: JsonCursor) => ReportedUsage | null
}

const USAGE = Buffer.from('usage')

/**
 * Reads a protocol's usage object. What is not an object at all is suspect and says nothing.
 *
 * @param reader null where the endpoint has no usage (counting tokens, listing models)
 * @param final false while the response was still in progress when it was sent
 * @returns null where there is none
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
 * Reads the usage out of a whole, successful, non-streamed response. The body is
 * walked at its top level, and only the usage object is parsed: a body of
 * hundreds of megabytes of base64 costs about as much as searching it once.
 *
 * @param body decompressed; a stream as one JSON array will do too
 * @returns null when the response reports nothing, such as one that is not JSON
 */
export function readBodyUsage(reader: UsageReader | null, body: Buffer): ReportedUsage | null {
  if (reader === null) return null
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  return reader.readBody ? reader.readBody(cursor) : readUsage(reader, member(cursor, USAGE))
}
