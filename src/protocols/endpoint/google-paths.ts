import { trimPath, withPathModel } from './classified.ts'
import type { Classified, Endpoint } from './protocol.ts'

/** Version prefixes that only Google's APIs use. Clients of Vertex AI use `v1beta1`. */
const GOOGLE_VERSION = 'v1(?:alpha|beta1?)'
/** Any version prefix, as the source of a regular expression. */
export const VERSION = `${GOOGLE_VERSION}?`
export const GOOGLE_PREFIX = new RegExp(`^/${GOOGLE_VERSION}/`)

export const PROJECT_LOCATION = 'projects/[^/]+/locations/[^/]+'

/** Models at Vertex AI, with or without a project, and a project's custom endpoints. The first group matches the publisher. */
export const PUBLISHER_PATH =
  new RegExp(`^/${VERSION}/(?:projects(?:/[^/]+){3}/)?(?:publishers/([^/]+)/models|endpoints)/`)

/** OpenAI's protocol at Gemini's API and at Vertex AI. */
export const CHAT_AT_GOOGLE = new RegExp(`^/(?:v1beta/openai|${VERSION}/${PROJECT_LOCATION}/endpoints/openapi)/`)

export const OPERATIONS = '/operations/'

/** Finds a known verb after the model that begins at `modelStart` and may be empty. @param plain the path in lower case */
export function verbPath(path: string, plain: string, modelStart: number, verbs: ReadonlyMap<string, Endpoint>): Classified | null {
  // Google reads an escaped colon as a colon. A colon that is a part of the model's name is not followed by a known verb.
  for (const [at, length] of [[plain.lastIndexOf(':'), 1], [plain.lastIndexOf('%3a'), 3]] as const) {
    if (at < modelStart) continue
    const endpoint = verbs.get(trimPath(plain.slice(at + length)))
    if (endpoint) return withPathModel(endpoint, path, modelStart, at)
  }
  return null
}
