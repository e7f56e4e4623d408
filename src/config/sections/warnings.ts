import type { Findings } from '../text/findings.ts'
import { compileGlob, compileGlobs, compileOverlaps } from '../glob.ts'
import { everyTarget } from './routes.ts'
import type { Config, Route, Upstream } from '../types.ts'

/** Warns of settings that are allowed but probably a mistake. The configuration must have no errors. */
export function addConfigWarnings(config: Config, findings: Findings): void {
  if (config.auth === 'keys' && config.keys.length + config.callers.length === 0) {
    findings.warnFile('there are no keys, so every request is refused; add one under keys, or set auth: open')
  }
  if (config.routes.length === 0) findings.warnFile('there are no routes, so every request gets 404')
  warnOfUnusedUpstreams(config, findings)
  warnOfAzurePath(config, findings)
  warnOfHiddenRoutes(config.routes, findings)
  warnOfResumeWithoutPrefill(config.routes, findings)
  warnOfHedgeWithoutTarget(config.routes, findings)
  warnOfMixedPayers(config, findings)
  warnOfUnservedModels(config, findings)
  warnOfSeparateLogins(config, findings)
  warnOfSeparateLimits(config, findings)
}

function warnOfSeparateLimits({ cluster }: Config, findings: Findings): void {
  if (cluster === null) return
  if (cluster.valkey === null) findings.warn(['cluster'], 'without cluster.valkey each gateway counts limits and budgets for itself', 'key')
  if (cluster.postgres === null) findings.warn(['cluster'], 'without cluster.postgres each gateway has a ledger and keys of its own', 'key')
}

function warnOfSeparateLogins({ console, ledger, server: { workers } }: Config, findings: Findings): void {
  if (workers === 1 || ledger !== null || console === null || console.users.length === 0) return
  const message = 'logins are kept beside the ledger: without one, each of the workers asks for a login of its own'
  findings.warn(['console', 'users'], message, 'key')
}

function warnOfUnusedUpstreams({ upstreams, routes }: Config, findings: Findings): void {
  const used = new Set(routes.flatMap(everyTarget).map(({ upstream }) => upstream.name))
  for (const name of upstreams.keys()) {
    if (!used.has(name)) findings.warn(['upstreams', name], 'no route names this upstream', 'key')
  }
}

const AZURE = /\.openai\.azure\.com$/

/** Warns of Azure upstreams without /openai/v1. Routes for paths under /openai are left out, because they may need Azure's older paths. */
function warnOfAzurePath({ upstreams, routes }: Config, findings: Findings): void {
  const asked = new Set(routes.filter(({ path }) => !path?.startsWith('/openai')).flatMap(everyTarget).map(({ upstream }) => upstream))
  for (const upstream of upstreams.values()) {
    const { name, url, v1, provider } = upstream
    // The provider configuration creates the paths itself.
    if (provider !== null || url === null || !AZURE.test(url.hostname) || !asked.has(upstream)) continue
    const there = url.pathname.replace(/\/+$/, '') + (v1 ?? '/v1')
    if (there.startsWith('/openai/v1')) continue
    const message = `what clients have under /v1 goes to ${there || '/'}, and Azure has it under /openai/v1`
    findings.warn(['upstreams', name, 'url'], `${message}; end the url with the host, and say v1: /openai/v1`)
  }
}

function warnOfHiddenRoutes(routes: readonly Route[], findings: Findings): void {
  // Group routes by path for speed: many routes have few different paths.
  const groups = new Map<string, RouteGroup>()
  for (const route of routes) {
    const path = route.path ?? '*'
    const earlier = [...groups.values()].filter(({ takesPath }) => takesPath(path))
      .map(({ covers }) => covers.find(({ takesModels }) => takesModels(route.models)))
      .filter(cover => cover !== undefined)
    const group = groups.get(path) ?? { takesPath: compileGlob(path), covers: [] }
    groups.set(path, group)
    group.covers.push({ line: route.line, takesModels: compileCover(route) })
    if (earlier.length === 0) continue
    const line = Math.min(...earlier.map(cover => cover.line))
    findings.warn(['routes', route.index], `no request reaches this route: the one on line ${line} takes all that it matches`)
  }
}

interface RouteGroup {
  readonly takesPath: (path: string) => boolean
  readonly covers: { readonly line: number, readonly takesModels: (models: Route['models']) => boolean }[]
}

/**
 * Creates a function that tells whether this route accepts every model of another route. Only a route without models covers another route
 * without models, because both also accept requests that name no model.
 */
function compileCover({ models }: Route): (others: Route['models']) => boolean {
  if (models === null) return () => true
  const takesModel = compileGlobs(models)
  return others => others?.every(takesModel) ?? false
}

function warnOfResumeWithoutPrefill(routes: readonly Route[], findings: Findings): void {
  for (const { index, resume, targets } of routes) {
    if (resume !== 'continue' || targets.some(target => target.prefill)) continue
    findings.warn(['routes', index, 'resume'], 'no target of this route has prefill: true, so a stream is continued only if the client has no text of it')
  }
}

function warnOfHedgeWithoutTarget(routes: readonly Route[], findings: Findings): void {
  for (const { index, hedgeAfter, targets, retries, timeouts } of routes) {
    if (hedgeAfter === null) continue
    if (targets.length < 2 || retries === 0) {
      findings.warn(['routes', index, 'hedge'], 'hedge needs a second target and retries of at least 1: no other target is asked')
    } else if (hedgeAfter >= timeouts.firstByte) {
      findings.warn(['routes', index, 'hedge', 'after'], 'hedge.after is not below timeouts.first_byte: the first target has failed by then')
    }
  }
}

const isPaidByClient = ({ auth }: Upstream): boolean => auth?.kind === 'client'

function warnOfMixedPayers({ routes, upstreams }: Config, findings: Findings): void {
  for (const route of routes) {
    const used = everyTarget(route).map(({ upstream }) => upstream)
    const client = used.find(isPaidByClient)
    const other = used.find(upstream => isPaidByClient(upstream) && upstream.url?.origin !== client?.url?.origin)
    if (client !== undefined && other !== undefined) {
      findings.error(['routes', route.index],
        `${client.name} and ${other.name} are different providers that the client pays: a credential for one would reach the other; give each a route`)
    }
    const operator = used.find(upstream => !isPaidByClient(upstream))
    if (client === undefined || operator === undefined) continue
    findings.warn(['routes', route.index], `requests that fail at ${client.name}, which the client pays, go on to ${operator.name}, which you pay; `
      + 'so do requests without a credential of the client')
  }
  for (const upstream of upstreams.values()) {
    if (upstream.health === null || !isPaidByClient(upstream)) continue
    findings.warn(['upstreams', upstream.name, 'health'], 'health checks of this upstream carry no credential, because clients send their own', 'key')
  }
}

function warnOfUnservedModels({ routes, keys }: Config, findings: Findings): void {
  if (routes.some(route => route.models === null)) return
  const isServed = compileOverlaps(routes.flatMap(route => route.models ?? []))
  const known = new Map<string, boolean>()
  for (const [index, key] of keys.entries()) {
    for (const [place, glob] of (key.models ?? []).entries()) {
      if (!known.has(glob)) known.set(glob, isServed(glob))
      if (known.get(glob)) continue
      const list = ['keys', index, 'models']
      findings.warn(findings.has([...list, place]) ? [...list, place] : list, 'no route serves a model of this name')
    }
  }
}
