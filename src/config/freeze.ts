/**
 * Freezes objects and arrays recursively, including those inside maps. Buffers, URLs and the maps themselves stay mutable at run time: only
 * their types are readonly.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (ArrayBuffer.isView(value) || value instanceof URL) return value
  Object.freeze(value)
  for (const inner of value instanceof Map ? value.values() : Object.values(value)) deepFreeze(inner)
  return value
}
