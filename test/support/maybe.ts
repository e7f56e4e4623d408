import fc from 'fast-check'

/** The value, or null. */
export function maybe<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.option(value, { nil: null })
}
