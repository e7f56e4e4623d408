import fc from 'fast-check'
import { caseArbitrary } from './cases.ts'
import type { Scenario } from './cases.ts'
import type { Fuzzer } from './fuzzer.ts'

export interface Finding {
  readonly faults: readonly string[]
  /** null = it shows only after many cases. */
  readonly scenario: Scenario | null
}

interface SearchOptions {
  readonly seed: number
  /** Milliseconds since 1970. */
  readonly until: number
  /** Bodies of tens of megabytes too? */
  readonly withHuge: boolean
  /** Kinds of faults that are not looked for. */
  readonly ignored?: readonly string[]
}

/** Of one seed. */
const CASES = 1_000
/** Milliseconds in which a finding is made smaller. */
const SHRINKING = 60_000

/** Runs the cases of a seed. @returns the first that shows a fault, as small as it can be made; null = none does */
export async function search(fuzzer: Fuzzer, { seed, until, withHuge, ignored = [] }: SearchOptions): Promise<Finding | null> {
  const isLookedFor = (fault: string): boolean => !ignored.some(kind => fault.startsWith(kind))
  let smallest: Finding | null = null
  let endOfShrinking = Infinity
  const property = fc.asyncProperty(caseArbitrary(withHuge), async choices => {
    if (Date.now() > endOfShrinking) return true
    const { scenario, faults } = await fuzzer.run(choices)
    const found = faults.filter(isLookedFor)
    if (found.length === 0) return true
    if (smallest === null) endOfShrinking = Date.now() + SHRINKING
    smallest = { faults: found, scenario }
    return false
  })
  const { errorInstance } = await fc.check(property, { seed, numRuns: CASES, interruptAfterTimeLimit: Math.max(0, until - Date.now()) })
  if (smallest !== null) return smallest
  if (errorInstance !== null) throw errorInstance as Error
  const faults = (await fuzzer.settle()).filter(isLookedFor)
  return faults.length === 0 ? null : { faults, scenario: null }
}
