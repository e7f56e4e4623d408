import { MAX_OBJECT_BYTES, measureJson, objectBytes } from '../../../base/json-size.ts'

/** Tells whether the arguments of all calls would take too much memory after parsing. Writers parse the arguments. */
export function haveTooManyObjects(texts: Iterable<string>): boolean {
  let bytes = 0
  for (const text of texts) bytes += objectBytes(measureJson(text))
  return bytes > MAX_OBJECT_BYTES
}
