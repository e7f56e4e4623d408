/** Copies bytes that are kept for long. A small `Buffer.from` is a slice of Node's pool, which keeps 64 kB in memory. */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
