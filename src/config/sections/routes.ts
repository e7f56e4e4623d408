import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { nearest } from '../nearest.ts'
import type { RawConfig, RawRoute, RawTarget } from '../raw.ts'
import type { Affinity, Route, Target, Timeouts, Upstream } from '../types.ts'
import { headerName } from './header.ts'
import { buildEdit } from './edits.ts'
import { checkNames } from './checks.ts'
import { hookNames } from './hooks.ts'
import { MAX_TIMER, buildQueue, buildTimeouts, timerDurationOf } from './values.ts'

export function buildRoutes(raw: RawConfig, upstreams: ReadonlyMap<string, Upstream>, timeouts: Timeouts, findings: Findings): Route[] {
  // If `upstreams` is missing, report that once instead of once for each route.
  const known = raw.upstreams === undefined ? null : upstreams
  return (raw.routes ?? []).flatMap((route, index) => {
    if (route === undefined) return []
    const path = ['routes', index]
    const { hedge } = route
    const targets = buildTargets(route.to, [...path, 'to'], known, route.model, findings)
    const onTarget = (reason: 'context_length' | 'content_filter'): Target | null =>
      buildTargets(route.on?.[reason], [...path, 'on', reason], known, route.model, findings)[0] ?? null
    const matched = {
      index, targets, line: findings.line(path), strategy: route.strategy ?? 'ordered',
      path: pathGlob(route.path, [...path, 'path'], findings),
      models: modelGlobs(route.model, [...path, 'model'], findings),
    }
    return [{
      ...matched,
      text: routeText(matched),
      affinity: buildAffinity(route.affinity, [...path, 'affinity'], findings),
      retries: route.retries ?? Math.max(0, targets.length - 1),
      on: { contextLength: onTarget('context_length'), contentFilter: onTarget('content_filter') },
      resume: route.resume ?? 'off',
      hedgeAfter: hedge?.after === undefined ? null : timerDurationOf(hedge.after, [...path, 'hedge', 'after'], MAX_TIMER, findings),
      translate: route.translate ?? 'lenient',
      checks: checkNames(route.checks, raw, [...path, 'checks'], findings),
      hooks: hookNames(route.hooks, raw, [...path, 'hooks'], findings),
      edit: buildEdit(route.edit, [...path, 'edit'], findings),
      fit: route.fit === 'check',
      queue: buildQueue(route.queue, [...path, 'queue'], findings),
      timeouts: buildTimeouts(route.timeouts, [...path, 'timeouts'], timeouts, findings),
    }]
  })
}

const MAX_LISTED = 5

type RouteMatch = Pick<Route, 'index' | 'line' | 'path' | 'models' | 'targets' | 'strategy'>

/** The description of a route. Created once, because the ledger stores it with every request of the route. */
function routeText({ index, line, path, models, targets, strategy }: RouteMatch): string {
  const matches = [...path === null ? [] : [`path ${path}`], ...models === null ? [] : [`model ${abbreviatedList(models)}`]]
  const names = targets.map(({ upstream: { name }, model }) => (model === null ? name : `${name}: ${model}`))
  const takes = matches.length === 0 ? 'everything' : matches.join(', ')
  return `routes[${index}], line ${line}: ${takes} -> ${abbreviatedList(names)} (${strategy})`
}

function abbreviatedList(names: readonly string[]): string {
  const rest = names.length - MAX_LISTED
  return names.slice(0, MAX_LISTED).join(' | ') + (rest > 0 ? ` and ${rest} more` : '')
}

function pathGlob(glob: string | undefined, path: Path, findings: Findings): string | null {
  if (glob === undefined) return null
  if (glob.includes('?') || glob.includes('#')) {
    findings.error(path, 'a path is matched without its query; leave out the part from ? or # on')
  } else if (!glob.startsWith('/') && !glob.startsWith('*')) {
    findings.error(path, 'a path starts with /, or with *')
  } else {
    checkGlob(glob, path, findings)
  }
  return glob
}

export function modelGlobs(model: string | readonly (string | undefined)[] | undefined, path: Path, findings: Findings): string[] | null {
  if (model === undefined) return null
  if (typeof model === 'string') {
    checkGlob(model, path, findings)
    return [model]
  }
  model.forEach((glob, index) => {
    if (glob !== undefined) checkGlob(glob, [...path, index], findings)
  })
  return model.filter(glob => glob !== undefined)
}

/** Warns of special characters other than *, which are probably a mistake: a glob has no other special character. */
export function checkGlob(glob: string, path: Path, findings: Findings, at: 'key' | 'value' = 'value'): void {
  if (/\s/.test(glob)) findings.warn(path, 'a glob with a space matches only names with a space', at)
  const odd = /[?[\]{}|^$\\]/.exec(glob)?.[0]
  if (odd !== undefined) findings.warn(path, `only * is special in a glob; ${odd} has no special meaning`, at)
}

function buildTargets(
  to: RawRoute['to'], path: Path, upstreams: ReadonlyMap<string, Upstream> | null, models: RawRoute['model'], findings: Findings,
): Target[] {
  const items = Array.isArray(to) ? to.map((item, index) => ({ item, at: path.concat(index) })) : [{ item: to, at: path }]
  return items.flatMap(({ item, at }) => {
    if (item === undefined) return []
    const isName = typeof item === 'string'
    const raw: RawTarget = isName ? { upstream: item } : item
    if (raw.upstream === undefined) return []
    const upstream = findUpstream(raw.upstream, isName ? at : [...at, 'upstream'], upstreams, findings)
    if (raw.model?.includes('*') && !isNamedByStar(raw.model, models)) {
      findings.error([...at, 'model'], "a * in a target's model is what the * of the route's model stands for: each of them needs exactly one")
    }
    return upstream ? [{ upstream, model: raw.model ?? null, weight: raw.weight ?? 1, prefill: raw.prefill ?? false }] : []
  })
}

/** Tells whether the requested model determines the text for the star in the target's model. */
function isNamedByStar(model: string, models: RawRoute['model']): boolean {
  const globs = typeof models === 'string' ? [models] : models ?? []
  return [model, ...globs].every(glob => glob?.split('*').length === 2) && globs.length > 0
}

/** @param text `key`, or `header:` followed by the name of a header */
function buildAffinity(text: string | undefined, path: Path, findings: Findings): Affinity | null {
  if (text === undefined) return null
  if (text === 'key') return { by: 'key' }
  return { by: 'header', name: headerName(text.slice('header:'.length), path, findings) }
}

function findUpstream(name: string, path: Path, upstreams: ReadonlyMap<string, Upstream> | null, findings: Findings): Upstream | undefined {
  if (upstreams === null) return undefined
  const upstream = upstreams.get(name)
  const names = findings.names(['upstreams'])
  if (upstream === undefined && !names.includes(name)) {
    const guess = nearest(name, names)
    const hint = guess === null ? knownNamesHint(names) : `; did you mean "${guess}"?`
    findings.error(path, `no upstream has this name${hint}`)
  }
  return upstream
}

function knownNamesHint(names: readonly string[]): string {
  if (names.length === 0) return '; there is none'
  return `; there is ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', ...' : ''}`
}

/** All targets of a route, including the targets for refused requests. */
export function everyTarget({ targets, on }: Route): readonly Target[] {
  return [...targets, on.contextLength, on.contentFilter].filter(target => target !== null)
}
