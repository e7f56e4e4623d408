import { GatewayError } from '../base/errors.ts'
import { JsonCursor } from '../protocols/shared/cursor.ts'
import { MODEL_LISTS } from '../protocols/shared/inspect.ts'
import type { InspectedBody } from '../protocols/shared/inspect.ts'

const MODEL = Buffer.from('model')
const MODELS = Buffer.from('models')
/** Each check takes time in which no other request is served. */
const MAX_NAMES = 1000
/** Nested lists: LiteLLM's fallbacks have one, and their entries may have fallbacks of their own. */
const MAX_DEPTH = 8

/** A model that a request names in addition to its own. */
interface NamedModel {
  readonly model: string
  /** The field of the body that names it. */
  readonly param: string
}

/**
 * The models that a request's body names in addition to its own: as elements of a list, or nested in one.
 *
 * @throws GatewayError invalid_json where there are more than 1,000, or nested more than 8 lists deep
 */
export function* additionalModels({ bytes, json }: InspectedBody): Generator<NamedModel, void, undefined> {
  let count = 0
  for (const param of MODEL_LISTS) {
    for (const { start, end } of json?.fields.get(param) ?? []) {
      for (const model of namesIn(new JsonCursor(bytes, start, end), param.endsWith('fallbacks'))) {
        if (++count > MAX_NAMES) {
          throw new GatewayError('invalid_json', `the body names more than ${MAX_NAMES} models`, { param })
        }
        yield { model, param }
      }
    }
  }
}

/**
 * The names in the list that the cursor is at: its strings, and the models in its objects.
 *
 * @param byModel its objects may have such lists under any key, as LiteLLM's `{ failed: [next] }`
 */
function* namesIn(cursor: JsonCursor, byModel: boolean, depth = 0): Generator<string, void, undefined> {
  if (!cursor.beginArray()) return
  if (depth > MAX_DEPTH) {
    throw new GatewayError('invalid_json', `the body names models more than ${MAX_DEPTH} lists deep`)
  }
  while (cursor.nextElement()) {
    if (cursor.isString()) yield nameAt(cursor)
    else if (!cursor.beginObject()) cursor.skip()
    else yield* namesInside(cursor, byModel, depth)
  }
}

function* namesInside(
  cursor: JsonCursor, byModel: boolean, depth: number,
): Generator<string, void, undefined> {
  while (cursor.nextMember()) {
    if (cursor.keyIs(MODEL) && cursor.isString()) yield nameAt(cursor)
    else if ((byModel || cursor.keyIs(MODELS)) && cursor.isArray()) yield* namesIn(cursor, byModel, depth + 1)
    else cursor.skip()
  }
}

function nameAt(cursor: JsonCursor): string {
  cursor.skip()
  return String(cursor.parsed())
}
