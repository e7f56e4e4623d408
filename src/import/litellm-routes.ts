import type { Deployment } from './litellm-deployments.ts'
import type { Note } from './litellm-notes.ts'
import { formatPath, type Path, type Source } from './source.ts'

export interface Target {
  readonly upstream: string
  readonly model?: string
  readonly weight?: number
}

export interface Route {
  readonly path?: string
  readonly model?: string
  readonly to: readonly Target[]
  readonly strategy?: string
  readonly retries?: number
  readonly on?: { readonly context_length?: Target; readonly content_filter?: Target }
  readonly timeouts?: { readonly first_byte?: string; readonly total?: string }
}

export interface Routes {
  readonly routes: readonly Route[]
  readonly notes: readonly Note[]
}

/** The fallbacks of a model, and the path of the setting that lists them. */
interface Chain {
  readonly path: Path
  readonly names: readonly string[]
}

interface Settings {
  readonly strategy: string
  readonly retries: number | null
  /** Timeout in seconds. */
  readonly timeout: number | null
  readonly streamTimeout: number | null
  readonly fallbacks: ReadonlyMap<string, Chain>
  readonly defaultFallbacks: Chain
  readonly contextWindowFallbacks: ReadonlyMap<string, Chain>
  readonly contentPolicyFallbacks: ReadonlyMap<string, Chain>
}

const STRATEGIES: ReadonlyMap<string, string> = new Map(Object.entries({
  'simple-shuffle': 'weighted',
  'least-busy': 'least_busy',
  'latency-based-routing': 'fastest',
  'usage-based-routing': 'least_busy',
  'usage-based-routing-v2': 'least_busy',
}))

const STRATEGY: Path = ['router_settings', 'routing_strategy']
/** Strategies that choose among all targets of a route, so that fallbacks cannot be last. */
const LOAD_STRATEGIES: ReadonlySet<string> = new Set(['least_busy', 'fastest'])

const MAX_WEIGHT = 1_000_000
/** Maximum share. A target with a higher share would get all requests anyway, and the limit keeps products finite. */
const MAX_SHARE = 1e12
/** A fallback is the first target of at most one in this many requests. */
export const FALLBACK_WEIGHT_RATIO = 1000

/** Creates a route for each model that clients request, with the settings of LiteLLM's router. */
export function readRoutes(source: Source, deployments: readonly Deployment[]): Routes {
  return new Router(source, deployments).read()
}

class Router {
  readonly #source: Source
  readonly #groups: ReadonlyMap<string, readonly Deployment[]>
  readonly #notes: Note[] = []

  constructor(source: Source, deployments: readonly Deployment[]) {
    this.#source = source
    this.#groups = Map.groupBy(deployments, ({ group }) => group)
  }

  read(): Routes {
    const settings: Settings = {
      strategy: this.#strategy(),
      retries: this.#setting('num_retries', 'num_retries'),
      timeout: this.#setting('timeout', 'request_timeout'),
      streamTimeout: this.#setting('stream_timeout', 'stream_timeout'),
      fallbacks: this.#fallbacks('fallbacks'),
      defaultFallbacks: this.#defaultChain('default_fallbacks'),
      contextWindowFallbacks: this.#fallbacks('context_window_fallbacks'),
      contentPolicyFallbacks: this.#fallbacks('content_policy_fallbacks'),
    }
    // Sort names before patterns, and longer patterns before shorter patterns.
    const rank = (name: string): number => (name.includes('*') ? name.length : Infinity)
    const names = [...this.#groups.keys()].toSorted((a, b) => rank(a) === rank(b) ? 0 : rank(b) - rank(a))
    const aliases = [...this.#aliases()].map(([alias, name]) => this.#aliasRoute(alias, name, settings))
    return { routes: [...aliases, ...names.map(name => this.#route(name, this.#groups.get(name) ?? [], settings))], notes: this.#notes }
  }

  /** Reads other names of groups: `{ alias: group }`, or `{ alias: { model: group, hidden } }`. */
  #aliases(): Map<string, string> {
    const path = ['router_settings', 'model_group_alias']
    const found = new Map<string, string>()
    for (const [alias, written] of Object.entries(Object(this.#source.take(path)) as Record<string, unknown>)) {
      const name = typeof written === 'string' ? written : (Object(written) as { model?: unknown }).model
      const isServed = typeof name === 'string' && this.#groups.has(name)
      if (isServed && !this.#groups.has(alias)) found.set(alias, name)
      else if (!isServed) this.#note([...path, alias], `nothing serves ${String(name)}: it was left out`)
    }
    return found
  }

  #aliasRoute(alias: string, name: string, settings: Settings): Route {
    // Set the model's name, because a target without a name would get the alias as its model.
    const named = (this.#groups.get(name) ?? []).map(each => ({ ...each, model: each.model ?? name }))
    return { ...this.#route(name, named, settings), model: alias }
  }

  #route(name: string, group: readonly Deployment[], settings: Settings): Route {
    const { strategy, retries, timeout, streamTimeout, fallbacks, defaultFallbacks: byDefault, contextWindowFallbacks: longer, contentPolicyFallbacks: milder } = settings
    const following = (chains: ReadonlyMap<string, Chain>, rest?: Chain): Deployment[] => {
      const chain = chains.get(name) ?? chains.get('*') ?? rest
      const others = (chain?.names ?? []).filter(other => other !== name).flatMap(other => this.#groups.get(other) ?? [])
      return others.filter(({ path }) => path === group[0]?.path)
    }
    const spare = following(fallbacks, byDefault)
    if (spare.length > 0 && group.length > 1 && LOAD_STRATEGIES.has(strategy)) {
      this.#note(STRATEGY, `${name} has fallbacks, and beside them its targets are shared out by weight`)
    }
    const [long] = following(longer)
    const [mild] = following(milder)
    const timeouts = {
      ...seconds('first_byte', longestTimeout(group, 'streamTimeout') ?? streamTimeout),
      ...seconds('total', longestTimeout(group, 'timeout') ?? timeout),
    }
    const on = {
      ...long && { context_length: target(long, null, true) },
      ...mild && { content_filter: target(mild, null, true) },
    }
    const path = group[0]?.path ?? null
    return {
      ...path !== null && { path },
      model: name,
      ...targets(group, spare, strategy),
      ...retries !== null && { retries: Math.min(100, retries + spare.length) },
      ...Object.keys(on).length > 0 && { on },
      ...Object.keys(timeouts).length > 0 && { timeouts },
    }
  }

  #strategy(): string {
    const name = this.#source.text(STRATEGY) ?? 'simple-shuffle'
    const strategy = STRATEGIES.get(name)
    if (strategy === undefined) this.#note(STRATEGY, `there is no ${name}: the targets are asked in order`)
    else if (name.startsWith('usage')) this.#note(
      STRATEGY, 'there is no routing by usage: least_busy is nearest',
    )
    return strategy ?? 'ordered'
  }

  /** Reads a setting of the router, which the file may have at either of two places. */
  #setting(name: string, elsewhere: string): number | null {
    const inRouter = this.#source.number(['router_settings', name])
    const outside = this.#source.number(['litellm_settings', elsewhere])
    return inRouter ?? outside
  }

  /** Reads the fallbacks of each model, which the file may have at either of two places: `[{a: [b, c]}]`. */
  #fallbacks(name: string): Map<string, Chain> {
    const found = new Map<string, Chain>()
    for (const path of [['router_settings', name], ['litellm_settings', name]]) {
      const list = this.#source.take(path)
      for (const entry of Array.isArray(list) ? list : []) {
        for (const [model, others] of Object.entries(Object(entry) as Record<string, unknown>)) {
          found.set(model, this.#servedChain(path, others))
        }
      }
    }
    return found
  }

  #defaultChain(name: string): Chain {
    const path = ['router_settings', 'litellm_settings'].map(block => [block, name])
      .find(each => this.#source.peek(each) !== undefined)
    return path ? this.#servedChain(path, this.#source.take(path)) : { path: [], names: [] }
  }

  #servedChain(path: Path, others: unknown): Chain {
    const names = [others].flat().filter(name => typeof name === 'string')
    for (const name of names) {
      if (!this.#groups.has(name)) this.#note(path, `nothing serves ${name}: it was left out`)
    }
    return { path, names: names.filter(name => this.#groups.has(name)) }
  }

  #note(path: Path, text: string): void {
    this.#notes.push({ place: this.#source.place(path), setting: formatPath(path), text })
  }
}

/** The targets of a model, followed by the targets of its fallbacks. */
function targets(
  group: readonly Deployment[], spare: readonly Deployment[], strategy: string,
): Pick<Route, 'to' | 'strategy'> {
  const isOrdered = strategy === 'ordered' || group.length === 1 || group.some(({ order }) => order !== null)
  if (isOrdered) {
    const last = Number.MAX_SAFE_INTEGER
    const inOrder = group.toSorted((a, b) => (a.order ?? last) - (b.order ?? last))
    return {
      to: [...inOrder.map(each => target(each, null)), ...spare.map(each => target(each, null, true))],
    }
  }
  if (spare.length === 0 && strategy !== 'weighted') {
    return { to: group.map(each => target(each, null)), strategy }
  }
  // LiteLLM uses a deployment with weight 0 only if no other deployment of the group is healthy.
  const off = group.every(({ weight }) => weight === 0) ? [] : group.filter(({ weight }) => weight === 0)
  const shared = group.filter(each => !off.includes(each))
  const weights = wholeWeights(shared.map(({ weight }) => weight ?? 1), off.length + spare.length > 0)
  return {
    to: [
      ...shared.map((each, index) => target(each, weights[index] as number)),
      ...off.map(each => target(each, 1)),
      ...spare.map(each => target(each, 1, true)),
    ],
    strategy: 'weighted',
  }
}

/** Whole weights with the same ratios. If there are fallbacks, the weights are much higher than 1. */
function wholeWeights(shares: readonly number[], beside: boolean): number[] {
  const whole = shares.map(
    share => Math.max(1, Math.round(Math.min(share, MAX_SHARE) * (shares.every(Number.isInteger) ? 1 : 100))),
  )
  const unit = whole.reduce(commonDivisor)
  const factor = beside ? FALLBACK_WEIGHT_RATIO : 1
  const fit = Math.min(1, MAX_WEIGHT / (Math.max(...whole) / unit * factor))
  return whole.map(share => Math.max(1, Math.round(share / unit * factor * fit)))
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/** @param isElsewhere true = the target serves another model than the client requests, so it needs the name of that model */
function target({ upstream, model, group }: Deployment, weight: number | null, isElsewhere = false): Target {
  const name = model ?? (isElsewhere && !group.includes('*') ? group : null)
  return { upstream, ...name !== null && { model: name }, ...weight !== null && weight !== 1 && { weight } }
}

function longestTimeout(group: readonly Deployment[], name: 'timeout' | 'streamTimeout'): number | null {
  const times = group.map(deployment => deployment[name]).filter(time => time !== null)
  return times.length === 0 ? null : Math.max(...times)
}

function seconds(name: string, time: number | null): Record<string, string> {
  if (time === null || time <= 0) return {}
  return { [name]: Number.isInteger(time) ? `${time}s` : `${Math.round(time * 1000)}ms` }
}
