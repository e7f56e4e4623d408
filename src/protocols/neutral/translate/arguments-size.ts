import { MAX_OBJECT_BYTES, measureJson, objectBytes } from '../../../base/json-size.ts'

/** Would the arguments of all calls, which writers parse, take too much memory as objects? */
export function haveTooManyObjects(texts: Iterable<string>): boolean {
  let bytes = 0
  for (const text of texts) bytes += objectBytes(measureJson(text))
  return bytes > MAX_OBJECT_BYTES
}
