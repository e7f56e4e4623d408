import type { Findings } from './findings.ts'
import { globCovers, globsOverlap } from './glob.ts'
import type { Config, Route } from './types.ts'

/** Warns of what is allowed but hardly meant. For configurations without an error. */
export function warnOfOddities(config: Config, findings: Findings): void {
  if (config.auth === 'keys' && config.keys.length === 0) {
    findings.warnFile('there are no keys, so nobody gets in; add one under keys, or say auth: open')
  }
  if (config.routes.length === 0) findings.warnFile('there are no routes, so every request gets 404')
  unusedUpstreams(config, findings)
  hiddenRoutes(config.routes, findings)
  resumedByNobody(config.routes, findings)
  unservedModels(config, findings)
  loginsOfOneWorker(config, findings)
}

function loginsOfOneWorker({ console, ledger, server: { workers } }: Config, findings: Findings): void {
  if (workers === 1 || ledger !== null || console === null || console.users.length === 0) return
  const message =
    'logins are kept beside the ledger: without one, each of the workers asks for a login of its own'
  findings.warn(['console', 'users'], message, 'key')
}

function unusedUpstreams({ upstreams, routes }: Config, findings: Findings): void {
  const used = new Set(routes.flatMap(({ targets, on }) =>
    [...targets, on.contextLength, on.contentFilter].map(target => target?.upstream.name)))
  for (const name of upstreams.keys()) {
    if (!used.has(name)) findings.warn(['upstreams', name], 'no route names this upstream', 'key')
  }
}

function hiddenRoutes(routes: readonly Route[], findings: Findings): void {
  for (const [place, route] of routes.entries()) {
    const earlier = routes.slice(0, place).find(before => covers(before, route))
    if (!earlier) continue
    const message = `no request reaches this route: the one on line ${earlier.line} takes all that it matches`
    findings.warn(['routes', route.index], message)
  }
}

function resumedByNobody(routes: readonly Route[], findings: Findings): void {
  for (const { index, resume, targets } of routes) {
    if (resume !== 'continue' || targets.some(target => target.prefill)) continue
    findings.warn(
      ['routes', index, 'resume'], 'no target of this route has prefill: true, so none continues a stream',
    )
  }
}

/** A route without models also takes requests that name none, so one with models never covers it. */
function covers(a: Route, b: Route): boolean {
  if (a.path !== null && !globCovers(a.path, b.path ?? '*')) return false
  const { models } = a
  if (models === null) return true
  return b.models?.every(glob => models.some(other => globCovers(other, glob))) ?? false
}

function unservedModels({ routes, keys }: Config, findings: Findings): void {
  if (routes.some(route => route.models === null)) return
  const served = routes.flatMap(route => route.models ?? [])
  const known = new Map<string, boolean>()
  for (const [index, key] of keys.entries()) {
    for (const [place, glob] of (key.models ?? []).entries()) {
      if (!known.has(glob)) known.set(glob, served.some(other => globsOverlap(other, glob)))
      if (known.get(glob)) continue
      const list = ['keys', index, 'models']
      const item = [...list, place]
      findings.warn(findings.has(item) ? item : list, 'no route serves a model of this name')
    }
  }
}
