import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { RawConfig } from './raw.ts'

interface NotYet {
  readonly what: string
  /** Where a configuration asks for it. */
  readonly asked: (raw: RawConfig) => readonly Path[]
}

/** Parts of the contract that are read and checked, but that this version does nothing about. */
const NOT_YET: readonly NotYet[] = [
  { what: "the console's login", asked: raw => (raw.console?.users?.length ? [['console', 'users']] : []) },
]

/** Warns of everything that the operator asked for in vain. */
export function warnOfNotYet(raw: RawConfig, findings: Findings): void {
  for (const { what, asked } of NOT_YET) {
    const message = `not acted on yet in this version: ${what}`
    for (const path of asked(raw)) findings.warn(path, message, 'key')
  }
}
