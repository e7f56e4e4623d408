import { JsonCursor } from '../json/cursor.ts'
import type { SocketSession } from './protocol.ts'

const TYPE = Buffer.from('type')
const MODEL = Buffer.from('model')
const ID = Buffer.from('id')
const RESPONSE = Buffer.from('response')
const SESSION = Buffer.from('session')
/** Longer names of models or lanes are ignored. */
const MAX_NAME_LENGTH = 256

/** The values in a WebSocket message that the gateway reads. */
export interface MessageInfo {
  readonly type: string
  /** null = the message names no model. */
  readonly model: string | null
  /** '' = the message names no lane. */
  readonly lane: string
}

/**
 * Reads the type, model and lane of a message. Source: OpenAI's API reference, "WebSocket events", `stream_id`, and "Realtime", server
 * events.
 */
export function readMessageInfo(message: Buffer, { laneKey, createConversation }: SocketSession): MessageInfo {
  const cursor = new JsonCursor(message)
  let type = ''
  let model: string | null = null
  let asked: string | null = null
  let lane = ''
  if (!cursor.beginObject()) return { type, model, lane }
  while (cursor.nextMember()) {
    const isType = cursor.keyIs(TYPE)
    const isLane = cursor.keyIs(laneKey)
    const isModel = cursor.keyIs(MODEL)
    const isResponse = cursor.keyIs(RESPONSE)
    if ((isResponse || cursor.keyIs(SESSION)) && cursor.isObject()) {
      const named = namesIn(cursor)
      model = named.model ?? model
      if (isResponse && createConversation !== null) lane = named.id ?? lane
    } else if (isType && cursor.isString()) type = textAt(cursor)
    else if (isLane && cursor.isString()) lane = nameAt(cursor) ?? ''
    else if (isModel && cursor.isString()) asked = nameAt(cursor)
    else cursor.skip()
  }
  return { type, model: model ?? asked, lane }
}

/** Reads the model and id of the object at the cursor, and moves the cursor behind the object. */
function namesIn(cursor: JsonCursor): { model: string | null, id: string | null } {
  const names = { model: null as string | null, id: null as string | null }
  cursor.beginObject()
  while (cursor.nextMember()) {
    const isModel = cursor.keyIs(MODEL)
    const isId = cursor.keyIs(ID)
    if (isModel && cursor.isString()) names.model = nameAt(cursor)
    else if (isId && cursor.isString()) names.id = nameAt(cursor)
    else cursor.skip()
  }
  return names
}

/** Reads the text at the cursor; null = the text is too long for a name. */
function nameAt(cursor: JsonCursor): string | null {
  const name = textAt(cursor)
  return name.length > MAX_NAME_LENGTH ? null : name
}

function textAt(cursor: JsonCursor): string {
  return cursor.skip() ? String(cursor.parsed()) : ''
}
