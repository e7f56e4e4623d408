import type { CheckConfig } from '../check-types.ts'
import { didYouMean } from '../nearest.ts'
import type { RawCheck, RawConfig } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'

export function buildChecks({ checks }: RawConfig, findings: Findings): Map<string, CheckConfig> {
  const built = new Map<string, CheckConfig>()
  for (const [name, check] of Object.entries(checks ?? {})) {
    if (check !== undefined) built.set(name, buildCheck(name, check, findings))
  }
  return built
}

function buildCheck(name: string, { find, on = [], size, action = 'refuse', all = false }: RawCheck, findings: Findings): CheckConfig {
  const path = ['checks', name]
  if (on.includes('response')) findings.error([...path, 'on'], 'responses are not checked; remove response, or record them with a hook (tap: true)')
  if ((find === undefined) === (size === undefined)) findings.error(path, 'a check needs either find or size', 'key')
  if (size !== undefined && action === 'mask') findings.error([...path, 'action'], 'a size cannot be masked; use refuse or log')
  const kinds = typeof find === 'string' ? [find] : (find ?? []).filter(kind => kind !== undefined)
  return { name, find: [...new Set(kinds)], size: size ?? null, action, all }
}

/** The checks of a route, a key or a group, by their names. Reports unknown ones. */
export function checkNames(
  names: readonly (string | undefined)[] | undefined, { checks }: RawConfig, path: Path, findings: Findings,
): readonly string[] {
  const known = Object.keys(checks ?? {})
  return (names ?? []).flatMap((name, at) => {
    if (name === undefined) return []
    if (known.includes(name)) return [name]
    findings.error([...path, at], `there is no check "${name}"${didYouMean(name, known)}; checks are defined under checks`)
    return []
  })
}
