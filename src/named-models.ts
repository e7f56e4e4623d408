import { JsonCursor } from './metering/cursor.ts'
import { MODEL_LISTS } from './protocols/inspect.ts'
import type { InspectedBody } from './protocols/inspect.ts'

const MODEL = Buffer.from('model')
const MODELS = Buffer.from('models')

/** A model that a request names beside its own. */
interface NamedModel {
  readonly model: string
  /** The member of the body that names it. */
  readonly param: string
}

/** The models that a request's body names beside its own: as elements of a list, or inside of one. */
export function modelsBeside({ bytes, json }: InspectedBody): NamedModel[] {
  return MODEL_LISTS.flatMap(param => (json?.fields.get(param) ?? []).flatMap(({ start, end }) => {
    const cursor = new JsonCursor(bytes, start, end)
    return namesIn(cursor).map(model => ({ model, param }))
  }))
}

/** The names in the list that the cursor is at. */
function namesIn(cursor: JsonCursor): string[] {
  const names: string[] = []
  if (!cursor.beginArray()) {
    cursor.skip()
    return names
  }
  while (cursor.nextElement()) {
    if (cursor.beginObject()) names.push(...namesInside(cursor))
    else if (cursor.isString()) names.push(nameAt(cursor))
    else cursor.skip()
  }
  return names
}

function namesInside(cursor: JsonCursor): string[] {
  const names: string[] = []
  while (cursor.nextMember()) {
    if (cursor.keyIs(MODEL) && cursor.isString()) names.push(nameAt(cursor))
    else if (cursor.keyIs(MODELS)) names.push(...namesIn(cursor))
    else cursor.skip()
  }
  return names
}

function nameAt(cursor: JsonCursor): string {
  cursor.skip()
  return String(cursor.parsed())
}
