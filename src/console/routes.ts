import { isoTime } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Key } from '../config/key-types.ts'
import { placeOf, type Problem } from '../config/problem.ts'
import type { Affinity, Config, Route, Target } from '../config/types.ts'
import type { Gateway } from '../pipeline/parts/gateway.ts'
import { MISMATCH_TEXT, explain } from '../pipeline/explain.ts'
import { listedModels } from '../pipeline/gateway-endpoints.ts'
import type { RouteRow } from './api/routes.ts'
import { cached } from './http/cached.ts'
import { candidateStates, circuitOf, type CandidateState } from './state/candidates.ts'
import { ConsoleProblem } from './http/console-problem.ts'
import { requireSession, type Context, type Operations } from './context.ts'
import { modelRow, withoutTargets } from './state/model-rows.ts'
import { servedModels } from './state/served-models.ts'
import { urlOf } from './state/texts.ts'
import type { Workers } from './state/workers.ts'

type RouteOperations = Pick<Operations, 'GET /routes' | 'GET /models' | 'POST /explain' | 'GET /configuration'>

const NAMES_MS = 60_000
const NO_NAMES: readonly string[] = []

export function routeOperations({ host, clock, store, reports }: Context, workers: Workers): RouteOperations {
  const usedModels = cached(() => reports.filters(null).then(({ models }) => models), NAMES_MS, () => clock.monotonic())
  let served: { readonly gateway: Gateway, readonly used: readonly string[], readonly models: ReadonlyMap<number, readonly string[]> } | null = null
  return {
    'GET /routes': async () => {
      // If the ledger cannot be read, use only models of the configuration.
      const [activity, used] = await Promise.all([workers.all(), usedModels().catch(() => NO_NAMES)])
      const gateway = host.current()
      const { file, routes } = gateway.config
      const states = candidateStates(activity)
      // Compute the models once, because the page asks every few seconds.
      if (served?.gateway !== gateway || served.used !== used) served = { gateway, used, models: servedModels(gateway, used) }
      const { models } = served
      return { file, routes: routes.map(route => routeRow(route, states, models.get(route.index) ?? [])) }
    },

    'GET /models': async asked => {
      const gateway = host.current()
      const { models, server } = gateway.config
      const { role, identity } = requireSession(asked)
      const now = new Date(clock.wall())
      const listed = new Set(listedModels(gateway))
      const names = [...new Set([...listed, ...models.keys()])]
      return {
        base_url: urlOf(server.listen, server.tls !== null),
        models: names.filter(name => identity?.allows(name) ?? true).map(name => modelRow(gateway, name, listed.has(name), now))
          // Hide models without a route from key holders. Such a name is the name of a model at an upstream, and has a price.
          .filter(({ listed, protocols }) => role !== 'key' || listed || protocols.length > 0)
          .map(model => (role === 'key' ? withoutTargets(model) : model)),
      }
    },

    'POST /explain': async ({ body: { path, model = null, key: keyName } }) => {
      const gateway = host.current()
      const key = keyName === undefined ? null : keyNamed(gateway, keyName)
      try {
        return explanation(gateway.config, path, model, key)
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        throw new ConsoleProblem('bad_request', error.message, { field: 'path' })
      }
    },

    'GET /configuration': async () => {
      const { config, sharedState: { reloads: { loadedAt, warnings, failure, pending } } } = host.current()
      const rejected = failure?.text ?? null
      return {
        file: config.file,
        loaded_at: isoTime(loadedAt),
        text: await store.call('masked', config.text),
        warnings: warnings.map(configurationProblem),
        failure: failure && {
          at: isoTime(failure.at),
          problems: failure.problems.map(configurationProblem),
          text: rejected === null ? null : await store.call('masked', rejected),
        },
        reloads: (await store.call('reloads')).map(({ at, changes, problems, diff, ...reload }) => ({
          ...reload, at: isoTime(at), changes: [...changes], problems: [...problems], diff: diff && [...diff],
        })),
        restart_needed: [...pending],
      }
    },
  }
}

function configurationProblem(problem: Problem) {
  const { line, severity, message } = problem
  return { place: placeOf(problem), line, severity, message }
}

function keyNamed({ config, keyStore }: Gateway, name: string): Key {
  const key = [...config.keys, ...keyStore?.keys() ?? []].find(key => key.name === name)
  if (key) return key
  throw new ConsoleProblem('not_found', `No active key is named ${JSON.stringify(name)}.`, { field: 'key' })
}

function explanation(config: Config, path: string, model: string | null, key: Key | null) {
  const { classified, own, refusal, steps, candidates, ...found } = explain(config, { path, model, key })
  const { name, protocol } = classified.endpoint
  return {
    endpoint: name, protocol, model: found.model, own,
    refusal: refusal && { code: refusal.code, status: refusal.status, message: refusal.message },
    steps: steps.map(({ route: { index, line }, miss }) => ({
      index, line, takes: miss === null, why: miss === null ? 'matches' : MISMATCH_TEXT[miss],
    })),
    candidates: candidates.map(({ target, url, model, headers, translation, isCountedHere }) => ({
      upstream: target.upstream.name, model, url,
      headers: Array.from({ length: headers.length / 2 }, (_, at) => ({
        name: headers[at * 2] as string,
        value: maskedHeaderValue(headers[at * 2] as string, headers[at * 2 + 1] as string, target),
      })),
      counted_here: isCountedHere,
      translation: translation && {
        from: translation.from, to: translation.to, dropped: [...translation.dropped], refused: [...translation.refused],
        refusal: translation.refusal?.message ?? null,
      },
    })),
  }
}

/** Masks the values of credentials and of configured headers, because configured headers can contain credentials too. */
function maskedHeaderValue(name: string, value: string, { upstream }: Target): string {
  const isCredential = upstream.auth?.headers.some(header => header === name)
  return isCredential || Object.hasOwn(upstream.headers, name) ? '***' : value
}

function routeRow(route: Route, states: ReadonlyMap<string, readonly CandidateState[]>, served: readonly string[]): RouteRow {
  const { index, line, path, models, targets, strategy, affinity, retries, on, resume, hedgeAfter, timeouts } = route
  return {
    index, line, path,
    models: models && [...models],
    served: [...served],
    targets: targets.map(({ upstream: { name }, model, weight, prefill }) => ({
      upstream: name, model, weight, prefill,
      circuit: model === null ? 'unknown' : circuitOf(model, states.get(name) ?? []),
    })),
    strategy, affinity: affinity && affinityText(affinity), retries, resume, hedge_after_ms: hedgeAfter,
    on_context_length: on.contextLength && targetText(on.contextLength),
    on_content_filter: on.contentFilter && targetText(on.contentFilter),
    timeouts: { connect_ms: timeouts.connect, first_byte_ms: timeouts.firstByte, idle_ms: timeouts.idle, total_ms: timeouts.total },
  }
}

function affinityText(affinity: Affinity): string {
  return affinity.by === 'key' ? 'key' : `header ${affinity.name}`
}

function targetText({ upstream, model }: Target): string {
  return model === null ? upstream.name : `${upstream.name}: ${model}`
}
