import { classifyPath, knownEndpoints } from './classify-path.ts'
import { outcomeOf } from './neutral/fields.ts'
import { TranslationReport } from './neutral/report.ts'
import { EMPTY_REQUEST } from './neutral/request.ts'
import type { Endpoint } from './endpoint/protocol.ts'
import { findTranslator, isTranslated, type Translator } from './translate.ts'

/** Fields that a translation drops or refuses, as paths of the client's body. */
export interface TranslationLosses {
  readonly dropped: readonly string[]
  /** Fields for which a request gets an error. */
  readonly refused: readonly string[]
}

/** The fields that a translator always drops or refuses. Of other fields, the translator may drop or refuse some values. */
export function translationLosses({ client, upstream, embeddings }: Translator): TranslationLosses {
  if (embeddings) {
    const fields = Object.entries(embeddings.client.fields)
    return { dropped: fields.filter(([, rule]) => rule === 'dropped').map(([path]) => path), refused: [] }
  }
  const fields = Object.entries(client.fields)
  const withOutcome = (outcome: 'dropped' | 'refused'): string[] => (
    fields.filter(([, rule]) => outcomeOf(rule, upstream.support) === outcome).map(([path]) => path)
  )
  return { dropped: withOutcome('dropped'), refused: withOutcome('refused') }
}

/** A request without inputs: the path of a request for embeddings depends only on the model. */
const NO_EMBEDDINGS = { inputs: [], dimensions: null, format: { isBase64: false, isSingle: false } }

/** The path and query of a translated request, without the upstream's prefix, and the endpoint at the upstream. */
export function translatedAddress({ upstream, embeddings }: Translator, model: string, stream: boolean): {
  readonly path: string, readonly query: string, readonly endpoint: Endpoint
} {
  const report = new TranslationReport(new Map(), new Set())
  const { path } = embeddings
    ? embeddings.upstream.writeRequest(NO_EMBEDDINGS, model)
    : upstream.writeRequest({ ...EMPTY_REQUEST, stream }, { report, model, accepts: {}, asksForUsage: false, provider: '' })
  const [plain = '', query] = path.split('?', 2)
  return { path: plain, query: query === undefined ? '' : `?${query}`, endpoint: classifyPath(plain).endpoint }
}

/**
 * The translators for text to an upstream: one for each protocol that the upstream does not speak.
 * @param takesPath tells whether a route leads from the path to the upstream
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
