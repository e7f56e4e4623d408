import { GatewayError } from '../base/errors.ts'
import { JsonCursor } from '../protocols/shared/cursor.ts'
import { INNER_REQUESTS, MODEL_LISTS } from '../protocols/shared/inspect.ts'
import type { InspectedBody } from '../protocols/shared/inspect.ts'
import { WatchedKeys } from '../protocols/shared/watched-keys.ts'

/** Members of an object that name models; upstreams that are written in Go take `model` in any case. */
const NAMES = new WatchedKeys(['model', 'models', 'modelName', 'model_name'], ['model'])
/** Each check takes time in which no other request is served. */
const MAX_NAMES = 1000
/** Nested lists: LiteLLM's fallbacks have one, and their entries may have fallbacks of their own. */
const MAX_DEPTH = 8
/** Nested objects and lists of a body that is read to its bottom. */
const MAX_NESTING = 100

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
      for (const model of namesIn(bytes, new JsonCursor(bytes, start, end), param.endsWith('fallbacks'))) {
        if (++count > MAX_NAMES) throw tooManyNames(param)
        yield { model, param }
      }
    }
  }
}

/**
 * The models that the objects of a JSON body name, however deep, beside its own `model`. For bodies whose form is unknown: in one that is
 * known, a `model` can also be an argument of a tool.
 *
 * @throws GatewayError invalid_json where there are more than 1,000, or they are nested more than 100 levels deep
 */
export function nestedModels({ bytes }: InspectedBody): readonly string[] {
  const names: string[] = []
  collectNames(bytes, new JsonCursor(bytes), false, names, 0)
  return names
}

/** The models that the requests inside of a request name. */
export function* innerRequestModels({ bytes, json }: InspectedBody): Generator<string, void, undefined> {
  for (const member of INNER_REQUESTS) {
    for (const { start, end } of json?.fields.get(member) ?? []) {
      const cursor = new JsonCursor(bytes, start, end)
      if (cursor.beginObject()) {
        yield* modelsInside(bytes, cursor)
      } else if (cursor.beginArray()) {
        while (cursor.nextElement()) {
          if (cursor.beginObject()) yield* modelsInside(bytes, cursor)
          else cursor.skip()
        }
      }
    }
  }
}

function* modelsInside(bytes: Buffer, cursor: JsonCursor): Generator<string, void, undefined> {
  while (cursor.nextMember()) {
    if (keyName(bytes, cursor) === 'model' && cursor.isString()) yield nameAt(cursor)
    else cursor.skip()
  }
}

/**
 * Adds the names in the value that the cursor is at.
 *
 * @param isName it belongs to a key that names models
 */
function collectNames(bytes: Buffer, cursor: JsonCursor, isName: boolean, names: string[], depth: number): void {
  if (depth > MAX_NESTING) {
    throw new GatewayError('invalid_json', `the body is nested more than ${MAX_NESTING} levels deep`)
  }
  if (cursor.beginObject()) {
    while (cursor.nextMember()) {
      const key = keyName(bytes, cursor)
      // The body's own model is checked elsewhere.
      if (depth === 0 && key === 'model') cursor.skip()
      else collectNames(bytes, cursor, key !== null, names, depth + 1)
    }
  } else if (cursor.beginArray()) {
    while (cursor.nextElement()) collectNames(bytes, cursor, isName, names, depth + 1)
  } else if (isName && cursor.isString()) {
    if (names.length === MAX_NAMES) throw tooManyNames('model')
    names.push(nameAt(cursor))
  } else {
    cursor.skip()
  }
}

/**
 * The names in the list that the cursor is at: its strings, and the models in its objects.
 *
 * @param byModel its objects may have such lists under any key, as LiteLLM's `{ failed: [next] }`
 */
function* namesIn(
  bytes: Buffer, cursor: JsonCursor, byModel: boolean, depth = 0,
): Generator<string, void, undefined> {
  if (!cursor.beginArray()) return
  if (depth > MAX_DEPTH) {
    throw new GatewayError('invalid_json', `the body names models more than ${MAX_DEPTH} lists deep`)
  }
  while (cursor.nextElement()) {
    if (cursor.isString()) yield nameAt(cursor)
    else if (!cursor.beginObject()) cursor.skip()
    else yield* namesInside(bytes, cursor, byModel, depth)
  }
}

function* namesInside(
  bytes: Buffer, cursor: JsonCursor, byModel: boolean, depth: number,
): Generator<string, void, undefined> {
  while (cursor.nextMember()) {
    const name = keyName(bytes, cursor)
    if (name === 'model' && cursor.isString()) yield nameAt(cursor)
    else if ((byModel || name === 'models') && cursor.isArray()) yield* namesIn(bytes, cursor, byModel, depth + 1)
    else cursor.skip()
  }
}

/** Which of NAMES the cursor's last key is; null = none. */
function keyName(bytes: Buffer, { keyStart, keyEnd }: JsonCursor): string | null {
  return NAMES.find(bytes, keyStart, keyEnd)
}

function tooManyNames(param: string): GatewayError {
  return new GatewayError('invalid_json', `the body names more than ${MAX_NAMES} models`, { param })
}

function nameAt(cursor: JsonCursor): string {
  cursor.skip()
  return String(cursor.parsed())
}
