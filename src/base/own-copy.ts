/**
 * Copies bytes that are kept for long. `Buffer.from` makes a small copy in a slice of Node's pool, and keeps 64 kB in
 * memory; this copy keeps only its own bytes.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}
