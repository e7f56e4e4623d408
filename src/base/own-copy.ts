/**
 * Copies bytes that are kept for long. A small copy that `Buffer.from` makes is a slice of Node's pool, and keeps 64 kB in
 * memory; this one keeps no more than itself.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
