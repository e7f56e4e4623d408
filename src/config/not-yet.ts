import type { Path } from './document.ts'
import type { Findings } from './findings.ts'
import type { RawConfig, RawRoute, RawTarget } from './raw.ts'

interface NotYet {
  readonly what: string
  /** Where a configuration asks for it. */
  readonly asked: (raw: RawConfig) => readonly Path[]
}

/** Parts of the contract that are read and checked, but that this version does nothing about. */
const NOT_YET: readonly NotYet[] = [
  {
    what: 'a strategy other than ordered',
    asked: raw => inRoutes(raw, route => ((route.strategy ?? 'ordered') === 'ordered' ? [] : [['strategy']])),
  },
  {
    what: 'retries',
    asked: raw => inRoutes(raw, route => ((route.retries ?? 0) === 0 ? [] : [['retries']])),
  },
  {
    what: 'a second target',
    asked: raw => inRoutes(raw, route => (Array.isArray(route.to) && route.to.length > 1 ? [['to', 1]] : [])),
  },
  { what: 'weight', asked: raw => inRoutes(raw, weights) },
  { what: 'the documentation site', asked: raw => (raw.docs === undefined ? [] : [['docs']]) },
  { what: "the console's login", asked: raw => (raw.console?.users?.length ? [['console', 'users']] : []) },
]

/** Warns of everything that the operator asked for in vain. */
export function warnOfNotYet(raw: RawConfig, findings: Findings): void {
  for (const { what, asked } of NOT_YET) {
    const message = `not acted on yet in this version: ${what}`
    for (const path of asked(raw)) findings.warn(path, message, 'key')
  }
}

function inRoutes(raw: RawConfig, asked: (route: RawRoute) => readonly Path[]): Path[] {
  return (raw.routes ?? []).flatMap((route, index) => {
    const paths = route === undefined ? [] : asked(route)
    return paths.map(path => ['routes', index].concat(path))
  })
}

function weights({ to }: RawRoute): Path[] {
  const isWeighted = (item: string | RawTarget | undefined): boolean =>
    typeof item === 'object' && (item.weight ?? 1) !== 1
  if (!Array.isArray(to)) return isWeighted(to) ? [['to', 'weight']] : []
  return to.flatMap((item, index) => (isWeighted(item) ? [['to', index, 'weight']] : []))
}
