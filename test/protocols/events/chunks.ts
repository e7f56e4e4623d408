import fc from 'fast-check'

/** The bytes cut anywhere, some of the chunks empty; or into single bytes. */
export function chunksOf(bytes: Buffer): fc.Arbitrary<Buffer[]> {
  const cuts = fc.array(fc.nat({ max: bytes.length }), { maxLength: 8 })
  return fc.oneof(
    cuts.map(places => {
      const sorted = places.toSorted((a, b) => a - b)
      return [0, ...sorted].map((from, n) => bytes.subarray(from, sorted[n] ?? bytes.length))
    }),
    fc.constant(chunksOfSize(bytes, 1)))
}

/** The bytes cut into chunks of `size` bytes. */
export function chunksOfSize(bytes: Buffer, size: number): Buffer[] {
  const length = Math.ceil(bytes.length / size)
  return Array.from({ length }, (_, n) => bytes.subarray(n * size, (n + 1) * size))
}
