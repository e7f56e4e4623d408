import { classifyPath, knownEndpoints } from './endpoint.ts'
import { neutralFieldOf } from './neutral/fields.ts'
import { TranslationReport } from './neutral/report.ts'
import { EMPTY_REQUEST } from './neutral/request.ts'
import type { Endpoint } from './shared/protocol.ts'
import { findTranslator, isTranslated } from './translate.ts'
import type { Translator } from './translate.ts'

/** What becomes of the fields of requests that are translated, as paths of the client's body. */
export interface TranslationLosses {
  /** The upstream does not get them. */
  readonly dropped: readonly string[]
  /** A request with one of them gets an error. */
  readonly refused: readonly string[]
}

/** What a translator drops and refuses, whatever the request. Of other fields some values may have no counterpart. */
export function translationLosses({ client, upstream }: Translator): TranslationLosses {
  const dropped: string[] = []
  const refused: string[] = []
  for (const [path, rule] of Object.entries(client.fields)) {
    const field = neutralFieldOf(rule)
    const isDropped = field === null ? rule === 'dropped' : upstream.support[field] === 'dropped'
    if (isDropped || (typeof rule !== 'string' && rule.to === 'dropped')) dropped.push(path)
    else if (typeof rule !== 'string') refused.push(path)
  }
  return { dropped, refused }
}

/** Where a translated request goes: its path and query, before the upstream's own prefix, and the endpoint there. */
export function translatedAddress({ upstream }: Translator, model: string, stream: boolean): {
  readonly path: string, readonly query: string, readonly endpoint: Endpoint
} {
  const report = new TranslationReport(new Map())
  const { path } = upstream.writeRequest({ ...EMPTY_REQUEST, stream }, { report, model, asksForUsage: false, provider: '' })
  const [plain = '', query] = path.split('?', 2)
  return { path: plain, query: query === undefined ? '' : `?${query}`, endpoint: classifyPath(plain).endpoint }
}

/**
 * The translators that bring requests to an upstream, one for each protocol that it does not speak.
 *
 * @param speaks the upstream's protocols
 * @param takesPath is there a route to it from that path?
 */
export function translatorsTo(speaks: readonly string[], takesPath: (path: string) => boolean): readonly Translator[] {
  const found = new Map<string, Translator>()
  for (const { path, endpoint } of knownEndpoints()) {
    if (!isTranslated(endpoint) || !takesPath(path)) continue
    const translator = findTranslator(endpoint, speaks)
    if (translator !== null) found.set(translator.from, translator)
  }
  return [...found.values()]
}
