import { MAX_OBJECT_BYTES, measureJson, objectBytes } from '../../../base/json-size.ts'

/**
 * Would the arguments of all calls together take too much memory as objects? Writers parse each of these texts.
 *
 * @param texts JSON, as the model generated them
 */
export function haveTooManyObjects(texts: Iterable<string>): boolean {
  let bytes = 0
  for (const text of texts) bytes += objectBytes(measureJson(text))
  return bytes > MAX_OBJECT_BYTES
}
