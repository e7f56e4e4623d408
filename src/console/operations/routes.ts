import type { Affinity, Config, Key, Price, Route, Target } from '../../config/types.ts'
import { placeOf } from '../../config/problem.ts'
import { GatewayError } from '../../errors.ts'
import { WHY, explain } from '../../explain.ts'
import type { Gateway } from '../../gateway.ts'
import { listedModels } from '../../own-endpoints.ts'
import type { Model, RouteRow } from '../api/routes.ts'
import { candidateStates } from '../candidates.ts'
import type { CandidateState } from '../candidates.ts'
import { sessionIn } from '../context.ts'
import type { Context, Operations } from '../context.ts'
import { ConsoleProblem } from '../problem.ts'
import { isoTime } from '../texts.ts'
import type { Workers } from '../workers.ts'

type RouteOperations = Pick<Operations, 'GET /routes' | 'GET /models' | 'POST /explain' | 'GET /configuration'>

/** How a model is asked in each protocol that the playground speaks. */
const PATHS = {
  chat: () => '/v1/chat/completions',
  responses: () => '/v1/responses',
  messages: () => '/v1/messages',
  generate: (model: string) => `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
} as const
type Protocol = keyof typeof PATHS
const PROTOCOLS = Object.keys(PATHS) as Protocol[]

/** What the gateway goes by: routes, models and prices, and the configuration that says so. */
export function routeOperations({ host, clock, desk }: Context, workers: Workers): RouteOperations {
  return {
    'GET /routes': async () => {
      const { config } = host.current()
      const states = candidateStates(await workers.all())
      return { file: config.file, routes: config.routes.map(route => routeRow(route, states)) }
    },

    'GET /models': async asked => {
      const gateway = host.current()
      const { role, identity } = sessionIn(asked)
      const now = new Date(clock.wall())
      const listed = new Set(listedModels(gateway))
      const names = [...new Set([...listed, ...gateway.config.models.keys()])]
      return {
        base_url: baseUrl(gateway.config),
        models: names
          .filter(name => identity?.allows(name) ?? true)
          .map(name => modelRow(gateway, name, listed.has(name), now))
          // What no route takes is what upstreams call a model, with its price.
          .filter(({ listed, protocols }) => role !== 'key' || listed || protocols.length > 0)
          .map(model => (role === 'key' ? { ...model, upstream: null } : model)),
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
      const { config, lasting: { reloads: { loadedAt, failure, pending } } } = host.current()
      return {
        file: config.file,
        loaded_at: isoTime(loadedAt),
        text: await desk.ask('masked', config.text),
        failure: failure && {
          at: isoTime(failure.at),
          problems: failure.problems.map(problem => ({
            place: placeOf(problem),
            severity: problem.severity,
            message: problem.message,
          })),
        },
        restart_needed: [...pending],
      }
    },
  }
}

/** null where the system chooses the port, or hands the socket over. */
function baseUrl({ server: { listen: { host, port, fd }, tls } }: Config): string | null {
  if (port === 0 || fd !== undefined) return null
  const name = host === '' ? '0.0.0.0' : host
  return `${tls ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`
}

function keyNamed({ config, keyStore }: Gateway, name: string): Key {
  const key = [...config.keys, ...keyStore?.keys() ?? []].find(key => key.name === name)
  if (key) return key
  throw new ConsoleProblem('not_found', `there is no live key named ${JSON.stringify(name)}`, { field: 'key' })
}

function explanation(config: Config, path: string, model: string | null, key: Key | null) {
  const { classified, own, refusal, steps, candidates, ...found } = explain(config, { path, model, key })
  const { name, protocol } = classified.endpoint
  return {
    endpoint: name,
    protocol,
    model: found.model,
    own,
    refusal: refusal && { code: refusal.code, status: refusal.status, message: refusal.message },
    steps: steps.map(({ route: { index, line }, miss }) => ({
      index, line, takes: miss === null, why: miss === null ? 'takes it' : WHY[miss],
    })),
    candidates: candidates.map(({ target, url, model, headers }) => ({
      upstream: target.upstream.name,
      model,
      url,
      headers: Array.from({ length: headers.length / 2 }, (_, at) => ({
        name: headers[at * 2] as string,
        value: shownValue(headers[at * 2] as string, headers[at * 2 + 1] as string, target),
      })),
    })),
  }
}

/** Headers of the operator's own may be credentials too. */
function shownValue(name: string, value: string, { upstream }: Target): string {
  return name === upstream.auth?.header || Object.hasOwn(upstream.headers, name) ? '***' : value
}

function routeRow(route: Route, states: ReadonlyMap<string, readonly CandidateState[]>): RouteRow {
  const { index, line, path, models, targets, strategy, affinity, retries, on, resume, timeouts } = route
  return {
    index,
    line,
    path,
    models: models && [...models],
    targets: targets.map(({ upstream: { name }, model, weight, prefill }) => ({
      upstream: name,
      model,
      weight,
      prefill,
      circuit: model === null ? 'unknown' : states.get(name)?.find(state => state.model === model)?.circuit ?? 'closed',
    })),
    strategy,
    affinity: affinity && affinityText(affinity),
    retries,
    resume,
    on_context_length: on.contextLength && targetText(on.contextLength),
    on_content_filter: on.contentFilter && targetText(on.contentFilter),
    timeouts: {
      connect_ms: timeouts.connect,
      first_byte_ms: timeouts.firstByte,
      idle_ms: timeouts.idle,
      total_ms: timeouts.total,
    },
  }
}

function affinityText(affinity: Affinity): string {
  return affinity.by === 'key' ? 'key' : `header ${affinity.name}`
}

function targetText({ upstream, model }: Target): string {
  return model === null ? upstream.name : `${upstream.name}: ${model}`
}

function modelRow({ routes, accounts }: Gateway, name: string, listed: boolean, now: Date): Model {
  const routeFor = (protocol: Protocol) => routes.match(PATHS[protocol](name), name)
  const protocols = PROTOCOLS.filter(protocol => routeFor(protocol) !== null)
  const target = routeFor(protocols[0] ?? 'chat')?.targets[0] ?? null
  const quoted = accounts.prices.priceOf(target?.upstream.url ?? null, target?.model ?? name, now, name)
  return {
    name,
    listed,
    protocols,
    price: quoted && plainPrice(quoted.price),
    price_source: quoted?.version ?? null,
    upstream: target?.upstream.name ?? null,
  }
}

/** By the names of gateway.yaml; of tiers, what is paid above so many tokens. */
function plainPrice({ tiers = [], ...rates }: Price): Record<string, string> {
  const entries = (price: Omit<Price, 'tiers'>, suffix: string) =>
    Object.entries(price).map(([name, usd]) => [snakeCase(name) + suffix, usd] as const)
  const above = tiers.flatMap(({ above, price }) => entries(price, ` > ${above}`))
  return Object.fromEntries([...entries(rates, ''), ...above])
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]|\d+/g, part => `_${part.toLowerCase()}`)
}
