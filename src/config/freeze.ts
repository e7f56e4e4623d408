/** Freezes objects and arrays recursively, also inside maps. Buffers, URLs and maps themselves stay mutable: only types protect them. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (ArrayBuffer.isView(value) || value instanceof URL) return value
  Object.freeze(value)
  for (const inner of value instanceof Map ? value.values() : Object.values(value)) deepFreeze(inner)
  return value
}
