import type { Endpoint } from './protocol.ts'

/** A model call, described as in OpenTelemetry's conventions. */
export interface GenAiCall {
  /** `gen_ai.operation.name` */
  readonly operation: string
  /** `gen_ai.provider.name` */
  readonly provider: string
}

/** Values of `gen_ai.provider.name` by host. Source: opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai. */
const PROVIDERS: readonly (readonly [host: RegExp, name: string])[] = [
  [/(?:^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(?:^|\.)(?:services\.ai|inference\.ai)\.azure\.com$/, 'azure.ai.inference'],
  [/(?:^|\.)bedrock[\w.-]*\.amazonaws\.com(?:\.cn)?$/, 'aws.bedrock'],
  [/(?:^|[.-])aiplatform\.googleapis\.com$/, 'gcp.vertex_ai'],
  [/(?:^|\.)generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/(?:^|\.)anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)openai\.com$/, 'openai'],
  [/(?:^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(?:^|\.)groq\.com$/, 'groq'],
  [/(?:^|\.)deepseek\.com$/, 'deepseek'],
  [/(?:^|\.)cohere\.(?:ai|com)$/, 'cohere'],
  [/(?:^|\.)perplexity\.ai$/, 'perplexity'],
  [/(?:^|\.)x\.ai$/, 'x_ai'],
]

/** Providers by protocol, for hosts that `PROVIDERS` does not list. */
const PROTOCOL_OWNERS: ReadonlyMap<string, string> = new Map(Object.entries({ messages: 'anthropic', generate: 'gcp.gemini' }))

export function providerAt(host: string): string | null {
  return PROVIDERS.find(([pattern]) => pattern.test(host))?.[1] ?? null
}

/** @param provider the provider of the upstream's host; null = unknown */
export function genAiCall(endpoint: Endpoint, provider: string | null): GenAiCall {
  return { operation: operationOf(endpoint), provider: provider ?? PROTOCOL_OWNERS.get(endpoint.protocol) ?? 'openai' }
}

function operationOf({ metering, prompt, format }: Endpoint): string {
  if (metering === 'embedding') return 'embeddings'
  if (format.isGoogles) return 'generate_content'
  return prompt?.members.includes('prompt') && metering === 'text' ? 'text_completion' : 'chat'
}
