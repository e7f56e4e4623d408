import type { Path } from './document.ts'
import { formatPath } from './findings.ts'
import type { Findings } from './findings.ts'
import { parseSize } from './units.ts'

/** Bytes of an optional size, at least one. */
export function sizeOf(
  size: string | number | undefined, path: Path, defaultBytes: number, findings: Findings,
): number {
  if (size === undefined) return defaultBytes
  const bytes = findings.parsed(path, () => parseSize(size))
  if (bytes === null) return defaultBytes
  if (bytes < 1) findings.error(path, `${formatPath(path)} must be at least 1b`)
  return bytes
}
