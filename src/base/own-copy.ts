/** Copies bytes that are kept for a long time. A small `Buffer.from` would be a slice of Node's pool, and keep 64 kB in memory. */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
