import { JsonCursor } from '../protocols/json/cursor.ts'
import { INNER_REQUESTS } from '../protocols/request/inspect.ts'
import type { InspectedBody } from '../protocols/request/inspect.ts'
import { WatchedKeys } from '../protocols/json/watched-keys.ts'

/** Finds `model` in any case: upstreams written in Go ignore the case of a member. */
const MODEL = new WatchedKeys(['model'], ['model'])

/** The models named by the requests inside a request. */
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
    if (MODEL.find(bytes, cursor.keyStart, cursor.keyEnd) !== null && cursor.isString()) {
      cursor.skip()
      yield String(cursor.parsed())
    } else {
      cursor.skip()
    }
  }
}
