import { JsonCursor } from '../json/cursor.ts'
import type { Json } from '../events/resumable-stream.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/** Members that contain the conversation. Only the role of its last turn is read. */
const TURN_FIELDS: ReadonlySet<string> = new Set(['messages', 'contents'])
/** Members of requests in the three streaming protocols that decide whether a response can be continued, and how. */
const OPTION_FIELDS = new WatchedKeys([
  'n', 'logprobs', 'audio', 'response_format', 'stream_options', 'output_format', 'output_config',
  'thinking', 'generationConfig', 'generation_config', ...TURN_FIELDS,
])
const ROLE = new WatchedKeys(['role'])

/** Maximum bytes that are read of an option's value, or of a turn's role. Valid values are much shorter. */
const MAX_OPTION_BYTES = 256 * 1024
const MAX_TURNS = 100_000

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Reads the options of a request without its prompt, because parsing many megabytes can block all other requests for seconds.
 * @param body well-formed JSON, decompressed
 * @returns the options, with a list of turns reduced to the `role` of the last turn. A string is the reason why the options cannot be read
 */
export function readRequestOptions(body: Buffer): Json | string {
  const places = membersOf(body, { start: 0, end: body.length }, OPTION_FIELDS)
  if (places === null) return 'the request is not a JSON object'
  const wishes: Json = {}
  for (const [name, place] of places) {
    if (TURN_FIELDS.has(name)) {
      const turns = lastTurn(body, place)
      if (typeof turns === 'string') return turns
      wishes[name] = turns
    } else {
      if (place.end - place.start > MAX_OPTION_BYTES) return `the request's '${name}' is too long to be looked into`
      wishes[name] = valueOf(body, place)
    }
  }
  return wishes
}

/** Finds each name's last value, because parsers use the last of duplicates; null = not an object. */
function membersOf(body: Buffer, { start, end }: ByteRange, names: WatchedKeys): Map<string, ByteRange> | null {
  const cursor = new JsonCursor(body, start, end)
  if (!cursor.beginObject()) return null
  const found = new Map<string, ByteRange>()
  while (cursor.nextMember()) {
    const name = names.find(body, cursor.keyStart, cursor.keyEnd)
    if (cursor.skip() && name !== null) found.set(name, { start: cursor.valueStart, end: cursor.valueEnd })
  }
  return found
}

/**
 * @returns a list with only the last turn; empty = the list has no turn; null = the value is not a list; a string = why it cannot be read
 */
function lastTurn(body: Buffer, list: ByteRange): Json[] | string | null {
  if (body[list.start] !== OPEN_BRACKET) return null
  const cursor = new JsonCursor(body, list.start, list.end)
  let count = 0
  cursor.beginArray()
  while (cursor.nextElement() && cursor.skip()) {
    if (++count > MAX_TURNS) return 'the request has too many turns to be looked into'
  }
  const last = { start: cursor.valueStart, end: cursor.valueEnd }
  if (count === 0 || body[last.start] !== OPEN_BRACE) return []
  const role = membersOf(body, last, ROLE)?.get('role')
  return [role && role.end - role.start <= MAX_OPTION_BYTES ? { role: valueOf(body, role) } : {}]
}

function valueOf(body: Buffer, { start, end }: ByteRange): unknown {
  return JSON.parse(body.toString('utf8', start, end))
}
