import { ANONYMOUS, identityOf } from '../auth/keyring.ts'
import { CapsuleKeys } from '../base/secrets/capsule-keys.ts'
import { systemClock } from '../base/clock.ts'
import { GatewayError, upgradeRequired } from '../base/errors.ts'
import type { Auth } from '../config/auth-types.ts'
import { compileGlob, compileGlobs } from '../config/glob.ts'
import type { Key } from '../config/key-types.ts'
import { everyTarget } from '../config/sections/routes.ts'
import { CREDENTIAL_NAME } from '../config/text/secrets.ts'
import type { Config, ProviderConfig, Route, Target, TranslateMode, Upstream } from '../config/types.ts'
import type { LocatedRequest } from './exchange/exchange.ts'
import { targetProtocols } from '../upstreams/live-targets.ts'
import { API_PREFIXES, isApiPath } from '../protocols/classify-path.ts'
import { locate } from '../protocols/locate.ts'
import { noModelNamed } from '../protocols/request/inspect.ts'
import type { Classified } from '../protocols/endpoint/protocol.ts'
import { checkQueryModel, queryModel, renameQuery } from '../protocols/request/query.ts'
import { renamePath } from '../protocols/request/rename.ts'
import { acceptedBy, modelRules, type AppliedRule } from '../protocols/vendors/model-rules.ts'
import { isSpoken, translate, type Translator } from '../protocols/translate.ts'
import { translatedAddress, translationLosses, translatorsTo, type TranslationLosses } from '../protocols/translation-preview.ts'
import { providerOf } from '../providers/index.ts'
import type { NativeRequest, ProviderAddress } from '../providers/shared/provider.ts'
import { headerRules, upstreamHeaders } from '../proxy/upstream/headers.ts'
import { upstreamPath } from '../proxy/upstream/upstream-address.ts'
import { RouteTable, type MismatchReason } from '../routing/route-table.ts'
import { admit } from './admit.ts'
import { translatorFor } from './attempt/outgoing-request.ts'
import { route, websocketTargets } from './route.ts'

export interface RouteQuery {
  /** The path as a client would send it, with or without a query. */
  readonly path: string
  readonly model: string | null
  readonly key: Key | null
  /** JSON; absent = list all fields that translation drops, whatever the request contains. */
  readonly body?: Buffer | null
}

export interface Explanation {
  readonly classified: Classified
  /** The model that decides the route. */
  readonly model: string | null
  /** true = the gateway itself responds, so no route applies. */
  readonly own: boolean
  /** null = the request is forwarded. */
  readonly refusal: Pick<GatewayError, 'code' | 'status' | 'message'> | null
  /** Every route up to the one that matches. */
  readonly steps: readonly { readonly route: Route; readonly miss: MismatchReason | null }[]
  readonly candidates: readonly Destination[]
}

export interface Destination {
  readonly target: Target
  readonly url: string
  readonly model: string | null
  /** Flat; credentials are masked. */
  readonly headers: readonly string[]
  /** null = not translated. */
  readonly translation: ExplainedTranslation | null
  /** Rules for untranslated requests; later rules override earlier ones. */
  readonly ownRules: readonly AppliedRule[]
  /** The gateway counts the tokens, because the target has no endpoint that counts tokens. */
  readonly isCountedHere: boolean
}

/** How a request is translated for one target. Fields are given as paths in the client's body. */
export interface ExplainedTranslation extends TranslationLosses {
  readonly from: string
  readonly to: string
  /** Rules for what the model accepts; later rules override earlier ones. */
  readonly rules: readonly AppliedRule[]
  /** null = the request is sent. */
  readonly refusal: Pick<GatewayError, 'code' | 'status' | 'message'> | null
}

export const MISMATCH_TEXT: Readonly<Record<MismatchReason, string>> = {
  path: 'path does not match',
  model: 'models do not match',
  'no model': 'the route lists models, but the request names none',
}

/** Runs the phases that need no network for a request. @throws GatewayError bad_request_target, model_ambiguous */
export function explain(config: Config, question: RouteQuery): Explanation {
  const routes = new RouteTable(config.routes, compileGlobs)
  const { target, classified } = locate(question.path, path => routes.namesPath(path))
  const { modelIn } = classified.endpoint
  const inQuery = modelIn === 'query' ? queryModel(target.query) : null
  const model = classified.pathModel ?? (inQuery || question.model || null)
  if (model !== null && (modelIn === 'body' || modelIn === 'deployment')) checkQueryModel(model, target.query)
  if (classified.endpoint.ownResponse !== null) return { classified, model, own: true, refusal: null, steps: [], candidates: [] }
  if (!isApiPath(target.path) && !routes.namesPath(target.path)) {
    const refusal = new GatewayError('unknown_path', `outside ${API_PREFIXES}, a route must name the path`)
    return { classified, model, own: false, refusal, steps: [], candidates: [] }
  }
  const steps = routes.trace(target.path, model)
  const targets = steps.at(-1)?.miss === null ? (steps.at(-1)?.route.targets ?? []) : []
  const identity = question.key === null ? ANONYMOUS : identityOf(question.key, compileGlobs, config.groups)
  const refusal = refusalOf(routes, { target, classified, identity, request: { model, stream: false, body: null } })
  const mode = steps.at(-1)?.route.translate ?? 'lenient'
  const candidates = targets.filter(({ upstream }) => !classified.endpoint.session?.required || upstream.websocket)
    .map(each => destination(each, { classified, path: target.path, query: target.query, model, mode, body: question.body ?? null }))
  return { classified, model, own: false, refusal: refusal ?? untranslatable(candidates), steps, candidates }
}

/** @returns the refusal of the last target; null = the request can be sent to at least one target */
function untranslatable(candidates: readonly Destination[]): Explanation['refusal'] {
  const refusals = candidates.map(({ translation }) => translation?.refusal ?? null)
  return refusals.includes(null) ? null : refusals.at(-1) ?? null
}

/** @returns null = the request is forwarded */
function refusalOf(routes: RouteTable, request: LocatedRequest): GatewayError | null {
  const { endpoint } = request.classified
  try {
    if (endpoint.modelRequired && request.request.model === null) throw noModelNamed()
    admit(request)
    const found = route(routes, request)
    const isOpen = !endpoint.session?.required || websocketTargets(found).length > 0
    return isOpen ? null : upgradeRequired('no upstream of the route accepts WebSockets')
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

interface ExplainedRequest {
  readonly classified: Classified
  readonly path: string
  readonly query: string
  readonly model: string | null
  readonly mode: TranslateMode
  readonly body: Buffer | null
}

function destination(target: Target, request: ExplainedRequest): Destination {
  const { classified, path, query, model } = request
  const { upstream } = target
  const isCountedHere = classified.endpoint.tokenCount !== null && !isSpoken(classified.endpoint, targetProtocols(target, model))
  const { translator, translation } = isCountedHere ? { translator: null, translation: null } : explainTranslation(target, request)
  const translated = translator && translatedAddress(translator, target.model ?? model ?? '', classified.endpoint.streamsByPath)
  const renamed = target.model !== null && target.model !== model ? target.model : null
  const base = upstream.url === null ? 'simulator:' : upstream.url.href.replace(/\/+$/, '')
  const added = Object.fromEntries(Object.entries(upstream.headers).map(([name, value]) =>
    [name, CREDENTIAL_NAME.test(name) ? mask(value) : value] as const))
  return {
    target,
    translation,
    ownRules: translation === null ? ownRules(target, request) : [],
    isCountedHere,
    url: base + addressAt(upstream, translated ? {
      endpoint: translated.endpoint, path: upstreamPath(upstream, translated.path), query: translated.query,
      model: target.model ?? model, stream: false,
    } : {
      endpoint: classified.endpoint,
      path: upstreamPath(upstream, renamed === null ? path : renamePath(classified, path, renamed)),
      query: renamed !== null && model !== null ? renameQuery(query, renamed) : query,
      model: renamed ?? model,
      stream: false,
    }),
    model: renamed ?? model,
    headers: [...upstreamHeaders(
      headerRules({ ...upstream, headers: added }), { raw: [], requestId: '<new for each request>' }, null,
    ), ...upstream.auth ? credentialHeaders(upstream.auth) : []],
  }
}

/** The rules for beta features. These rules apply to untranslated requests too. */
function ownRules({ upstream, model: own }: Target, { classified: { endpoint: { protocol } }, model }: ExplainedRequest): readonly AppliedRule[] {
  return modelRules(upstream, protocol, own ?? model ?? '', model)
    .flatMap(({ from, accepts: { betas } }) => (betas === undefined ? [] : [{ from, accepts: { betas } }]))
}

/** @returns `translator` null = the request is not translated, or cannot be */
function explainTranslation(
  target: Target, { classified: { endpoint }, model, mode, body }: ExplainedRequest,
): { readonly translator: Translator | null, readonly translation: ExplainedTranslation | null } {
  let translator: Translator | null
  const speaks = targetProtocols(target, model)
  try {
    translator = translatorFor(endpoint, speaks, mode)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const to = speaks?.[0] ?? ''
    return { translator: null, translation: { from: endpoint.protocol, to, rules: [], dropped: [], refused: [], refusal: error } }
  }
  if (translator === null) return { translator, translation: null }
  const { from, to } = translator
  const losses = translationLosses(translator)
  const own = target.model ?? model ?? ''
  const rules = modelRules(target.upstream, to, own, model)
  if (body === null) return { translator, translation: { from, to, rules, refusal: null, ...appliedLosses(losses, mode) } }
  try {
    const { dropped } = translate(translator, body, {
      model: own, accepts: acceptedBy(rules), host: target.upstream.name, stream: endpoint.streamsByPath,
      asksForUsage: target.upstream.usage === 'ask', isStrict: mode === 'strict',
      // Capsules cannot be opened without the keys of a gateway.
      capsules: { keys: new CapsuleKeys(systemClock), reserve: () => undefined },
    })
    return { translator, translation: { from, to, rules, dropped, refused: [], refusal: null } }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { translator, translation: { from, to, rules, dropped: [], refused: [], refusal: error } }
  }
}

/** A strict route refuses the fields that another route drops. */
function appliedLosses({ dropped, refused }: TranslationLosses, mode: TranslateMode): TranslationLosses {
  return mode === 'strict' ? { dropped: [], refused: [...dropped, ...refused] } : { dropped, refused }
}

function addressAt({ provider }: Upstream, native: NativeRequest): string {
  const { path, query } = provider === null ? native : providerAddress(provider, native)
  return path + query
}

/** @returns the address at the provider; the client's path and query if the provider does not serve the request */
function providerAddress(provider: ProviderConfig, native: NativeRequest): ProviderAddress {
  try {
    return providerOf(provider).addressOf(native)
  } catch (error) {
    if (error instanceof GatewayError) return native
    throw error
  }
}

/** The headers of the credential, flat, without the secret. */
function credentialHeaders(auth: Auth): string[] {
  const header = auth.headers[0] ?? ''
  switch (auth.kind) {
    case 'static': return [header, mask(auth.value)]
    case 'file': return [header, `${auth.prefix}<from ${auth.file}>`]
    case 'command': return [header, `${auth.prefix}<printed by ${auth.command[0]}>`]
    case 'oauth2': return [header, `Bearer <from ${auth.tokenUrl}>`]
    case 'azure': return [header, 'Bearer <token of Microsoft Entra ID>']
    case 'aws': return [header, `AWS4-HMAC-SHA256 <signature for ${auth.region}>`]
    case 'google': return [header, 'Bearer <token of Google Cloud>']
    case 'client': return [header, `<the client's own, in this header or in ${auth.headers.slice(1).join(', ')}>`]
    case 'pool': return auth.headers.flatMap(name => [name, `<one of ${auth.pool.length} credentials>`])
  }
}

/** Masks a credential: of a secret with 16 or more characters the first four remain, so that an operator can tell two apart. */
function mask(value: string): string {
  const scheme = /^[\w-]+ (?=\S+$)/.exec(value)?.[0] ?? ''
  const secret = value.slice(scheme.length)
  return `${scheme}${secret.length >= 16 ? secret.slice(0, 4) : ''}…`
}

export interface RouteTranslation {
  readonly place: string
  readonly translator: Translator
}

export function routeTranslations(route: Route): RouteTranslation[] {
  return everyTarget(route).flatMap(target => {
    const { upstream: { name, speaks }, model } = target
    const served = targetProtocols(target, route.models?.[0] ?? null)
    if (served === null) return []
    const place = served === speaks || model === null ? name : `${name}, ${model}`
    return translatorsTo(served, route.path === null ? () => true : compileGlob(route.path)).map(translator => ({ place, translator }))
  })
}
