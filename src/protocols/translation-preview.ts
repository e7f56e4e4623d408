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
export function translationLosses({ client, upstream, embeddings }: Translator): TranslationLosses {
  if (embeddings) {
    const fields = Object.entries(embeddings.client.fields)
    return { dropped: fields.filter(([, rule]) => rule === 'dropped').map(([path]) => path), refused: [] }
  }
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

const NO_EMBEDDINGS = { inputs: [], dimensions: null, format: { isBase64: false, isSingle: false } }

/** Where a translated request goes: its path and query, before the upstream's own prefix, and the endpoint there. */
export function translatedAddress({ upstream, embeddings }: Translator, model: string, stream: boolean): {
  readonly path: string, readonly query: string, readonly endpoint: Endpoint
} {
  const report = new TranslationReport(new Map())
  const text = () => upstream.writeRequest({ ...EMPTY_REQUEST, stream }, { report, model, asksForUsage: false, provider: '' })
  const { path } = embeddings ? embeddings.upstream.writeRequest(NO_EMBEDDINGS, model) : text()
  const [plain = '', query] = path.split('?', 2)
  return { path: plain, query: query === undefined ? '' : `?${query}`, endpoint: classifyPath(plain).endpoint }
}

/**
 * The translators that bring requests for text to an upstream, one for each protocol that it does not speak.
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
