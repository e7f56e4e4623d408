import { Type, type Static } from 'typebox'
import { StrictObject, Count, Timestamp, Ms, Name, Nullable, StringEnum } from './shapes.ts'

const RouteTarget = StrictObject({
  upstream: Name, model: Nullable(Name), weight: Type.Number(), prefill: Type.Boolean(),
  circuit: StringEnum(['closed', 'open', 'probing', 'unknown'], 'unknown: of a model that the client names'),
})

export const RouteRow = StrictObject({
  index: Count, line: Type.Integer(), path: Nullable(Type.String()), models: Nullable(Type.Array(Type.String())),
  served: Type.Array(Name, { description: 'Known models that reach the route by a glob: of the configuration, and used in the last 30 days; 200 at most' }),
  targets: Type.Array(RouteTarget),
  strategy: StringEnum(['ordered', 'weighted', 'least_busy', 'fastest']),
  affinity: Nullable(Type.String()),
  retries: Count,
  resume: StringEnum(['off', 'continue', 'hold', 'continue_or_hold']),
  hedge_after_ms: Nullable(Ms),
  on_context_length: Nullable(Type.String()), on_content_filter: Nullable(Type.String()),
  timeouts: StrictObject({ connect_ms: Ms, first_byte_ms: Ms, idle_ms: Ms, total_ms: Ms }),
})
export type RouteRow = Static<typeof RouteRow>

export const Routes = StrictObject({ file: Type.String(), routes: Type.Array(RouteRow) })
export type Routes = Static<typeof Routes>

/** The protocols that the playground supports. */
const Protocols = Type.Array(StringEnum(['chat', 'responses', 'messages', 'generate']))

const PriceFields = {
  price: Nullable(Type.Record(Type.String(), Type.String())),
  price_source: Nullable(Type.String({ description: 'config, or the name and version of the catalogue' })),
}

const ModelTarget = StrictObject({
  upstream: Name, model: Nullable(Name), protocols: Protocols,
  after: Nullable(StringEnum(['context_length', 'content_filter'], 'Asked only when others refused a request for that')),
  ...PriceFields,
})

/** A model that a route names, or a model with a price. */
export const Model = StrictObject({
  name: Name,
  listed: Type.Boolean({ description: 'Listed in GET /v1/models' }),
  /** Protocols in which clients can request the model. */
  protocols: Protocols,
  /** The price at the first target; null for key holders. */
  ...PriceFields,
  price_varies: Type.Boolean({ description: 'The prices of the targets differ; the target that responds is billed' }),
  /** Upstream of the first target; null for key holders. */
  upstream: Nullable(Name),
  targets: Type.Array(ModelTarget, { description: 'In the order of the route; empty for key holders' }),
})
export type Model = Static<typeof Model>

export const Models = StrictObject({
  /** URL of the address in the configuration: `http://0.0.0.0:8080`. */
  base_url: Nullable(Type.String()),
  models: Type.Array(Model),
})
export type Models = Static<typeof Models>

export const ExplainRequest = StrictObject({
  path: Type.String({ maxLength: 8192, pattern: '^/' }),
  model: Type.Optional(Name),
  key: Type.Optional(Name),
})
export type ExplainRequest = Static<typeof ExplainRequest>

/** The same result as the command `gateway explain` prints. */
export const Explanation = StrictObject({
  endpoint: Type.String(),
  protocol: Nullable(Type.String()),
  model: Nullable(Name),
  own: Type.Boolean(),
  refusal: Nullable(StrictObject({ code: Type.String(), status: Type.Integer(), message: Type.String() })),
  /** The routes that were tried, up to the route that matches. */
  steps: Type.Array(StrictObject({
    index: Count, line: Type.Integer(), takes: Type.Boolean(),
    why: Type.String({ description: 'The reason as text' }),
  })),
  candidates: Type.Array(StrictObject({
    upstream: Name, model: Nullable(Name), url: Type.String(),
    headers: Type.Array(StrictObject({ name: Type.String(), value: Type.String({ description: 'Credentials are masked' }) })),
    counted_here: Type.Boolean({ description: 'The target does not count tokens: the gateway does, and sends nothing' }),
    /** The translation; null = the request is not translated. */
    translation: Nullable(StrictObject({
      from: Type.String(), to: Type.String(),
      dropped: Type.Array(Type.String(), { description: 'Fields of a request that the target does not get' }),
      refused: Type.Array(Type.String(), { description: 'Fields with which a request is refused' }),
      refusal: Nullable(Type.String({ description: 'Why the target gets no such request; null = it does' })),
    })),
  })),
})
export type Explanation = Static<typeof Explanation>

const ConfigurationProblem = StrictObject({
  place: Type.String({ description: 'file:line:column, or the file' }),
  line: Nullable(Count),
  severity: StringEnum(['error', 'warning']),
  message: Type.String(),
})

export const Configuration = StrictObject({
  file: Type.String(),
  loaded_at: Timestamp,
  /** Text of the active file with its comments. Secrets are masked, and `${NAME}` is not expanded. */
  text: Type.String(),
  warnings: Type.Array(ConfigurationProblem, { description: 'Of the active configuration' }),
  /** The failure of the last reload; null = it succeeded. */
  failure: Nullable(StrictObject({
    at: Timestamp,
    problems: Type.Array(ConfigurationProblem),
    text: Nullable(Type.String({ description: 'The rejected file, with secrets masked; null = it cannot be read' })),
  })),
  reloads: Type.Array(StrictObject({
    /** Name of the gateway; null = there is only one gateway. */
    gateway: Nullable(Name),
    at: Timestamp,
    applied: Type.Boolean(),
    by: Type.String({ description: 'Who or what asked for it: command line: root, SIGHUP, --watch' }),
    changes: Type.Array(Type.String({ description: 'Such as upstreams.openai: changed' })),
    problems: Type.Array(Type.String()),
    diff: Nullable(Type.Array(StrictObject({
      kind: StringEnum(['added', 'removed', 'same', 'gap']), line: Count, text: Type.String(),
    }), { description: 'Lines that changed and those around them, 400 at most; null = unreadable, or too much changed' })),
  }), { description: 'The last 20 reloads, the newest first; with cluster.postgres the last 50 of all gateways' }),
  restart_needed: Type.Array(Type.String(), { description: 'Changed keys of the configuration that need a restart' }),
})
export type Configuration = Static<typeof Configuration>
