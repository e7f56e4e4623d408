import type { Path } from './document.ts'
import type { Findings } from './findings.ts'

/** Warns of a secret in quotes: no vendor's has them, and not every reader of env files takes them off. */
export function checkQuotes(secret: string, path: Path, findings: Findings): void {
  if (!/^(["']).*\1$/.test(secret)) return
  const advice = "docker's --env-file keeps them"
  findings.warn(path, `the value begins and ends with a quote, and both are part of it; ${advice}`)
}
