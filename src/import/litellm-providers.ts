import { isCloud } from './litellm-clouds.ts'

/** The address of a LiteLLM provider. The gateway appends the client's path to the address. */
export interface Provider {
  /** The URL; null = only the operator's api_base contains it. */
  readonly url: string | null
  /** The path that replaces /v1; null = /v1 stays. */
  readonly v1: string | null
  /** The variable from which LiteLLM reads the key if the file has no key; null = no key is needed. */
  readonly variable: string | null
  /** The header for the credential; `bearer` means `Authorization: Bearer`. */
  readonly auth: 'bearer' | 'x-api-key' | 'x-goog-api-key' | 'api-key'
  /** The protocols of the provider's own API. */
  readonly speaks: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

const PROVIDERS: ReadonlyMap<string, Provider> = new Map(Object.entries({
  openai: { ...chat('https://api.openai.com', 'OPENAI_API_KEY'), speaks: ['chat', 'responses'] },
  'text-completion-openai': chat('https://api.openai.com', 'OPENAI_API_KEY'),
  anthropic: {
    url: 'https://api.anthropic.com', v1: null, variable: 'ANTHROPIC_API_KEY', auth: 'x-api-key',
    speaks: ['messages'], headers: { 'anthropic-version': '2023-06-01' },
  },
  gemini: {
    url: 'https://generativelanguage.googleapis.com', v1: null, variable: 'GEMINI_API_KEY',
    auth: 'x-goog-api-key', speaks: ['generate'],
  },
  // In Azure's v1 API, the deployment is the model, and there is no api-version.
  azure: { url: null, v1: null, variable: 'AZURE_API_KEY', auth: 'api-key', speaks: ['chat', 'responses'] },
  groq: chat('https://api.groq.com/openai', 'GROQ_API_KEY'),
  mistral: chat('https://api.mistral.ai', 'MISTRAL_API_KEY'),
  codestral: chat('https://codestral.mistral.ai', 'CODESTRAL_API_KEY'),
  deepseek: chat('https://api.deepseek.com', 'DEEPSEEK_API_KEY'),
  openrouter: chat('https://openrouter.ai/api', 'OPENROUTER_API_KEY'),
  together_ai: chat('https://api.together.xyz', 'TOGETHERAI_API_KEY'),
  fireworks_ai: chat('https://api.fireworks.ai/inference', 'FIREWORKS_AI_API_KEY'),
  xai: chat('https://api.x.ai', 'XAI_API_KEY'),
  cerebras: chat('https://api.cerebras.ai', 'CEREBRAS_API_KEY'),
  nvidia_nim: chat('https://integrate.api.nvidia.com', 'NVIDIA_NIM_API_KEY'),
  cohere: chat('https://api.cohere.ai/compatibility', 'COHERE_API_KEY'),
  cohere_chat: chat('https://api.cohere.ai/compatibility', 'COHERE_API_KEY'),
  perplexity: chat('https://api.perplexity.ai', 'PERPLEXITYAI_API_KEY', '/'),
  zai: chat('https://api.z.ai', 'ZAI_API_KEY', '/api/paas/v4'),
  deepinfra: chat('https://api.deepinfra.com', 'DEEPINFRA_API_KEY', '/v1/openai'),
  volcengine: chat('https://ark.cn-beijing.volces.com', 'VOLCENGINE_API_KEY', '/api/v3'),
  github: chat(null, 'GITHUB_API_KEY', '/'),
  dashscope: chat('https://dashscope-intl.aliyuncs.com/compatible-mode', 'DASHSCOPE_API_KEY'),
  sambanova: chat('https://api.sambanova.ai', 'SAMBANOVA_API_KEY'),
  moonshot: chat('https://api.moonshot.ai', 'MOONSHOT_API_KEY'),
  ollama: chat('http://127.0.0.1:11434', null),
  ollama_chat: chat('http://127.0.0.1:11434', null),
  hosted_vllm: chat(null, null),
  vllm: chat(null, null),
  lm_studio: chat(null, null),
  litellm_proxy: chat(null, 'LITELLM_PROXY_API_KEY'),
}))

/** Providers that have a separate address for reranking. */
export const RERANK_PROVIDERS: ReadonlyMap<string, Provider> = new Map([
  ['cohere', chat('https://api.cohere.com', 'COHERE_API_KEY')],
])

/** Providers of LiteLLM that need more than a URL and a fixed credential, with the reason. */
const UNSUPPORTED: ReadonlyMap<string, string> = new Map(Object.entries({
  sagemaker: 'requests to SageMaker are signed one by one (SigV4), which the gateway does not do',
  huggingface: 'its API is none of the three protocols',
  replicate: 'its API is none of the three protocols',
  watsonx: 'its API is none of the three protocols',
}))

export interface NamedModel {
  readonly provider: string
  /** The name of the model at the provider. */
  readonly model: string
}

/**
 * Splits `anthropic/claude-x` into provider and model. Without a prefix, the name of the model determines the provider.
 *
 * @param custom the provider that the entry sets separately; null = none
 */
export function providerOf(model: string, custom: string | null): NamedModel {
  const [prefix = '', ...rest] = model.split('/')
  const isKnown = PROVIDERS.has(prefix) || UNSUPPORTED.has(prefix) || isCloud(prefix)
  if (rest.length > 0 && (isKnown || custom === null)) {
    // In azure/responses/x, the middle part selects the API that LiteLLM calls.
    const name = rest.join('/')
    const hasMode = prefix === 'openai' || prefix === 'azure'
    return { provider: custom ?? prefix, model: hasMode ? name.replace(/^responses\//, '') : name }
  }
  const provider = model.startsWith('claude') ? 'anthropic' : model.startsWith('gemini') ? 'gemini' : 'openai'
  return { provider: custom ?? provider, model }
}

export function findProvider(name: string): Provider | null {
  return PROVIDERS.get(name) ?? null
}

/** Why the gateway cannot reach a provider. */
export function unsupportedReason(name: string): string {
  return UNSUPPORTED.get(name) ?? 'the provider is not known here'
}

function chat(url: string | null, variable: string | null, v1: string | null = null): Provider {
  return { url, v1, variable, auth: 'bearer', speaks: ['chat'] }
}
