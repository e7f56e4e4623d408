import { JsonCursor } from './cursor.ts'

const TYPE = Buffer.from('type')
const MODEL = Buffer.from('model')
const LANE = Buffer.from('stream_id')
const HOLDERS = [Buffer.from('response'), Buffer.from('session')]
/** A longer one is nobody's: neither a model's nor a lane's. */
const LONGEST_NAME = 256

/** What a message over a WebSocket tells of itself. */
export interface Heading {
  readonly type: string
  /** The model that it names; null = none. */
  readonly model: string | null
  /** '' = it names none. */
  readonly lane: string
}

/** Reads that of a message of the responses or the realtime protocol. */
export function headingOf(message: Buffer): Heading {
  const cursor = new JsonCursor(message)
  let type = ''
  let model: string | null = null
  let asked: string | null = null
  let lane = ''
  if (!cursor.beginObject()) return { type, model, lane }
  while (cursor.nextMember()) {
    const isType = cursor.keyIs(TYPE)
    const isLane = cursor.keyIs(LANE)
    const isModel = cursor.keyIs(MODEL)
    if (HOLDERS.some(name => cursor.keyIs(name)) && cursor.isObject()) model = modelIn(cursor) ?? model
    else if (isType && cursor.isString()) type = textAt(cursor)
    else if (isLane && cursor.isString()) lane = nameAt(cursor) ?? ''
    else if (isModel && cursor.isString()) asked = nameAt(cursor)
    else cursor.skip()
  }
  return { type, model: model ?? asked, lane }
}

/** Of the object that the cursor is at, which is passed. */
function modelIn(cursor: JsonCursor): string | null {
  let model: string | null = null
  cursor.beginObject()
  while (cursor.nextMember()) {
    const isModel = cursor.keyIs(MODEL) && cursor.isString()
    if (isModel) model = nameAt(cursor)
    else cursor.skip()
  }
  return model
}

/** null: too long for one. */
function nameAt(cursor: JsonCursor): string | null {
  const name = textAt(cursor)
  return name.length > LONGEST_NAME ? null : name
}

function textAt(cursor: JsonCursor): string {
  return cursor.skip() ? String(cursor.parsed()) : ''
}
