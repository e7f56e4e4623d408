import type { Upstream } from '../config/types.ts'

/** A free request of the vendor's API that shows whether a credential is accepted. */
export interface Probe {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body: object | null
  /** The model that the request names; null = none. */
  readonly model: string | null
}

/** Headers of all probes, flat. Anthropic requires the version, and other vendors ignore it. */
export const PROBE_HEADERS: readonly string[] = ['anthropic-version', '2023-06-01']

const LIST: Probe = { method: 'GET', path: '/v1/models', body: null, model: null }
const LIST_OF_GOOGLE: Probe = { ...LIST, path: '/v1beta/models' }
/** Used if no route names a model of the upstream. */
const DEFAULT_MODELS = { bedrock: 'anthropic.claude-3-5-haiku-20241022-v1:0', vertex: 'gemini-2.5-flash' } as const

/** Requests the list of models or, if the cloud has no list, the token count of one word. @param model null = no model is known */
export function probeOf({ provider, speaks, url }: Upstream, model: string | null): Probe {
  if (provider === null || provider.kind === 'azure') {
    const isGoogles = speaks === null ? url?.hostname === 'generativelanguage.googleapis.com' : speaks[0] === 'generate'
    return isGoogles ? LIST_OF_GOOGLE : LIST
  }
  const counted = model ?? DEFAULT_MODELS[provider.kind]
  if (provider.kind === 'bedrock' || /^claude-/i.test(counted)) {
    const body = { model: counted, messages: [{ role: 'user', content: 'Hello' }] }
    return { method: 'POST', path: '/v1/messages/count_tokens', body, model: counted }
  }
  const body = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
  return { method: 'POST', path: `/v1beta/models/${encodeURIComponent(counted)}:countTokens`, body, model: counted }
}
