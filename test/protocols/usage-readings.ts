import type { ReportedUsage } from '../../src/protocols/usage/reported-usage.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'

export function sound(usage: Partial<Usage>): ReportedUsage {
  return { usage: { ...blankUsage(), ...usage }, suspect: false }
}

export function doubtful(usage: Partial<Usage>): ReportedUsage {
  return { usage: { ...blankUsage(), ...usage }, suspect: true }
}
