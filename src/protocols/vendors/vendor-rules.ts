import type { Accepts } from '../neutral/accepts.ts'

/** What models accept at targets. The rule applies if all of its conditions match; an absent condition always matches. */
export interface VendorRule {
  /** The subject of the rule, as text for people. */
  readonly about: string
  readonly models?: RegExp
  readonly protocols?: readonly string[]
  readonly hosts?: RegExp
  /** Cloud providers of the upstream. The rule applies if `providers` or `hosts` matches. */
  readonly providers?: readonly string[]
  readonly accepts: Accepts
  /** The vendor's page, SDK or report from which the rule is. */
  readonly source: string
}

const OPENAI_HOSTS = /(?:^|\.)api\.openai\.com$|\.openai\.azure\.com$|\.cognitiveservices\.azure\.com$|\.services\.ai\.azure\.com$/
const OPENAI_REASONING = 'OpenAI, reasoning guide; openai 7.55, ChatCompletionCreateParams'
const ANTHROPIC_SDK = '@anthropic-ai/sdk 0.137, MessageCreateParams'
/** Values of `anthropic-beta` that both Amazon Bedrock and Vertex AI accept. */
const CLOUD_BETAS = [
  'compact-2026-01-12', 'computer-use-2025-01-24', 'computer-use-2025-11-24', 'context-1m-2025-08-07', 'context-management-2025-06-27',
  'dangerous-tool-use-2026-09-03', 'interleaved-thinking-2025-05-14', 'thinking-binding-controls-2026-08-01',
  'thinking-display-updates-2026-08-18', 'tool-search-tool-2025-10-19',
]
const REFUSES_SAMPLING: Accepts = {
  temperature: { only: [1] }, topP: { only: [1] }, presencePenalty: { only: [0] }, frequencyPenalty: { only: [0] },
}

/** Matches the beginning of a model's name. A vendor or a region may precede the name: `openai/o3`, `us.anthropic.claude-...`. */
function named(pattern: string): RegExp {
  return new RegExp(`(?:^|[/.])(?:${pattern})`)
}

/** Matches Mistral's models, including their names at servers of open models. */
const MISTRAL = /(?:^|[/.])(?:(?:open-)?(?:mistral|mixtral)|ministral|magistral|devstral|codestral|pixtral|labs-)/i

/** If several rules match, a later rule overrides members of an earlier rule. */
export const VENDOR_RULES: readonly VendorRule[] = [
  {
    about: 'Chat servers', protocols: ['chat'],
    accepts: { maxTokens: 'max_tokens', system: 'first', toolName: { length: 64, pattern: '[A-Za-z0-9_-]' } },
    source: 'Mistral and DeepSeek API references (max_tokens); chat template of Qwen 3.5 (system message at the beginning); OpenAI API reference (function.name)',
  },
  {
    about: 'Models of Mistral', protocols: ['chat'], models: MISTRAL,
    accepts: { toolIdLength: 9, userBehindResult: false },
    source: 'mistral-common, InstructRequest validation; github.com/anomalyco/opencode/issues/1680; github.com/NousResearch/hermes-agent/issues/20154',
  },
  {
    about: "Mistral's API", protocols: ['chat'], hosts: /(?:^|\.)mistral\.ai$/,
    accepts: {
      toolIdLength: 9, userBehindResult: false, seed: 'random_seed', without: ['user', 'service_tier', 'verbosity', 'name', 'stream_options'],
    },
    source: 'mistralai/client-python, ChatCompletionRequest: it refuses other fields with 422; github.com/openai/openai-agents-python/issues/442',
  },
  {
    about: "DeepSeek's API", protocols: ['chat'], hosts: /(?:^|\.)deepseek\.com$/,
    accepts: { without: ['json_schema'] },
    source: 'DeepSeek API reference, response_format',
  },
  {
    about: 'OpenAI and Azure OpenAI', protocols: ['chat'], hosts: OPENAI_HOSTS, providers: ['azure'],
    accepts: { maxTokens: 'max_completion_tokens', system: 'anywhere' },
    source: 'OpenAI API reference, max_completion_tokens',
  },
  {
    about: "OpenAI's models elsewhere", protocols: ['chat'], models: named('(?:gpt-(?!oss)|chatgpt-|o\\d(?:-|$)|codex-)'),
    accepts: { system: 'anywhere' },
    source: 'OpenAI API reference, messages',
  },
  {
    about: 'Responses servers', protocols: ['responses'],
    accepts: { toolName: { length: 64, pattern: '[A-Za-z0-9_-]' } },
    source: 'OpenAI API reference, tools',
  },
  {
    about: 'Messages servers', protocols: ['messages'],
    accepts: { temperature: { max: 1 }, temperatureWithTopP: false, toolName: { length: 128, pattern: '[A-Za-z0-9_-]' } },
    source: 'Anthropic API reference, temperature and tools',
  },
  {
    about: 'Gemini', protocols: ['generate'],
    accepts: { toolName: { length: 64, pattern: '[A-Za-z0-9_.:-]', start: '[A-Za-z_]' }, thinkingLast: true },
    source: 'Gemini API reference, FunctionDeclaration',
  },
  {
    about: 'Kimi K3', models: named('kimi-k3'),
    accepts: { temperature: { only: [1] } },
    source: 'github.com/anomalyco/models.dev/pull/3331',
  },
  {
    about: 'Bedrock Converse', protocols: ['converse'],
    accepts: { temperature: { max: 1 }, toolName: { length: 64, pattern: '[A-Za-z0-9_-]' } },
    source: 'Amazon Bedrock API reference, ToolSpecification and InferenceConfiguration',
  },
  {
    about: 'Grok at Bedrock Converse', protocols: ['converse'], models: named('grok-'),
    accepts: { temperature: false, topP: false },
    source: 'github.com/NousResearch/hermes-agent/issues/111043',
  },
  {
    about: 'Claude at Amazon Bedrock', protocols: ['messages'], providers: ['bedrock'],
    accepts: {
      betas: [
        ...CLOUD_BETAS, 'computer-use-2024-10-22', 'dev-full-thinking-2025-05-14', 'effort-2025-11-24',
        'fine-grained-tool-streaming-2025-05-14', 'mid-conversation-output-config-2026-07-01',
        'mid-conversation-tool-changes-2026-07-01', 'output-128k-2025-02-19', 'token-efficient-tools-2025-02-19',
        'tool-examples-2025-10-29',
      ],
    },
    source: 'Amazon Bedrock user guide, Anthropic Claude Messages API; LiteLLM, anthropic_beta_headers_config.json',
  },
  {
    about: 'Claude at Vertex AI', protocols: ['messages'], providers: ['vertex'],
    accepts: { betas: [...CLOUD_BETAS, 'compact-2026-09-04', 'per-turn-control-2026-07-01', 'web-search-2025-03-05'] },
    source: 'LiteLLM, anthropic_beta_headers_config.json; github.com/anthropics/claude-code/issues (Unexpected value(s) for the anthropic-beta header)',
  },
  { about: 'GPT-4 and older', models: named('(?:gpt-[34]|chatgpt-4)'), accepts: { efforts: [] }, source: OPENAI_REASONING },
  {
    about: 'o1, o3, o4-mini', models: named('o[134](?:-|$)'),
    accepts: { ...REFUSES_SAMPLING, efforts: ['low', 'medium', 'high'], maxTokens: 'max_completion_tokens' },
    source: OPENAI_REASONING,
  },
  {
    about: 'o3, o4-mini', models: named('(?:o3(?:-\\d|$)|o4-mini)'),
    accepts: { stop: false },
    source: 'openai 7.55, ChatCompletionCreateParams.stop',
  },
  {
    about: 'GPT-5', models: named('gpt-5(?![.\\d])'),
    accepts: { ...REFUSES_SAMPLING, stop: false, efforts: ['minimal', 'low', 'medium', 'high'], maxTokens: 'max_completion_tokens' },
    source: OPENAI_REASONING,
  },
  { about: 'GPT-5 Codex', models: named('gpt-5-codex'), accepts: { efforts: ['low', 'medium', 'high'] }, source: OPENAI_REASONING },
  { about: 'GPT-5 Pro', models: named('gpt-5-pro'), accepts: { efforts: ['high'] }, source: OPENAI_REASONING },
  {
    about: 'GPT-5.1', models: named('gpt-5\\.1(?!\\d)'),
    accepts: { samplingWithReasoning: false, efforts: ['none', 'low', 'medium', 'high'], maxTokens: 'max_completion_tokens' },
    source: 'OpenAI, guide to GPT-5.1; github.com/openai/openai-agents-python/issues/2089',
  },
  {
    about: 'GPT-5.2 and newer', models: named('gpt-(?:5\\.(?:[2-9]|\\d\\d)|[6-9]|\\d\\d)'),
    accepts: { samplingWithReasoning: false, efforts: ['none', 'low', 'medium', 'high', 'xhigh'], maxTokens: 'max_completion_tokens' },
    source: 'OpenAI, guide to GPT-5.2',
  },
  {
    about: 'GPT-5.1 Codex', models: named('gpt-5\\.1-codex'),
    accepts: { ...REFUSES_SAMPLING, efforts: ['low', 'medium', 'high'] },
    source: OPENAI_REASONING,
  },
  {
    about: 'GPT-5.1 Codex Max, GPT-5.2 Codex and newer', models: named('gpt-5\\.(?:1-codex-max|(?:[2-9]|\\d\\d)-codex)'),
    accepts: { ...REFUSES_SAMPLING, efforts: ['low', 'medium', 'high', 'xhigh'] },
    source: OPENAI_REASONING,
  },
  {
    about: 'GPT-5 chat models', models: named('gpt-5(?:\\.\\d+)?-chat'),
    accepts: { temperature: {}, topP: {}, presencePenalty: {}, frequencyPenalty: {}, samplingWithReasoning: true, stop: true, efforts: [] },
    source: 'github.com/BerriAI/litellm/issues/13781',
  },
  {
    about: 'Claude', models: named('claude-'),
    accepts: { temperature: { max: 1 }, temperatureWithTopP: false },
    source: 'Anthropic API reference, temperature; Amazon Bedrock user guide, Claude Sonnet 4.5',
  },
  {
    about: 'Claude 4.6', models: named('claude-(?:(?:opus|sonnet)-4[.-]6|4[.-]6)(?!\\d)'),
    accepts: { efforts: ['none', 'low', 'medium', 'high', 'max'] },
    source: 'Anthropic, effort',
  },
  {
    about: 'Claude from Opus 4.7 and Sonnet 5 on',
    models: named('claude-(?:opus-(?:4[.-](?:[7-9]|\\d\\d)(?!\\d)|[5-9]|[1-9]\\d(?!\\d))|4[.-][7-9](?!\\d)|(?:sonnet|haiku)-(?:[5-9]|[1-9]\\d)(?!\\d)|fable|mythos)'),
    accepts: { temperature: { only: [1] }, topP: { min: 0.99 }, topK: false, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
    source: ANTHROPIC_SDK,
  },
  {
    about: 'Claude Fable and Mythos', models: named('claude-(?:fable|mythos)'),
    accepts: { efforts: ['low', 'medium', 'high', 'xhigh', 'max'] },
    source: 'Anthropic, migration guide: thinking cannot be disabled',
  },
]
