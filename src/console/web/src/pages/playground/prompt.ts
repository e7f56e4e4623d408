/** Builds the request for a prompt in each protocol. */

export const PROTOCOLS = ['chat', 'responses', 'messages', 'generate'] as const
export type Protocol = (typeof PROTOCOLS)[number]

export const PROTOCOL_NAMES: Readonly<Record<Protocol, string>> = {
  chat: 'Chat completions',
  responses: 'Responses',
  messages: 'Messages',
  generate: 'Generate content',
}

export interface Prompt {
  readonly protocol: Protocol
  readonly model: string
  /** Empty: no system prompt. */
  readonly system: string
  readonly text: string
  /** null: not set in the request, unless the protocol requires it. */
  readonly maxTokens: number | null
  readonly temperature: number | null
  readonly stream: boolean
}

export interface Call {
  /** Path below the base URL, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

/** Default for the Messages protocol, which requires max_tokens. */
export const MESSAGES_MAX_TOKENS = 1024
export const MESSAGES_VERSION = '2023-06-01'

/** @returns the request of a client of the prompt's protocol, without credentials */
export function callOf(prompt: Prompt): Call {
  return { headers: {}, ...CALLS[prompt.protocol](prompt) }
}

const CALLS: Readonly<Record<Protocol, (prompt: Prompt) => Omit<Call, 'headers'> & Partial<Call>>> = {
  chat: ({ model, system, text, maxTokens, temperature, stream }) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      messages: [
        ...system === '' ? [] : [{ role: 'system', content: system }],
        { role: 'user', content: text },
      ],
      ...maxTokens !== null && { max_tokens: maxTokens },
      ...temperature !== null && { temperature },
      ...stream && { stream: true, stream_options: { include_usage: true } },
    },
  }),
  responses: ({ model, system, text, maxTokens, temperature, stream }) => ({
    path: '/v1/responses',
    body: {
      model,
      ...system !== '' && { instructions: system },
      input: text,
      ...maxTokens !== null && { max_output_tokens: maxTokens },
      ...temperature !== null && { temperature },
      ...stream && { stream: true },
    },
  }),
  messages: ({ model, system, text, maxTokens, temperature, stream }) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': MESSAGES_VERSION },
    body: {
      model,
      max_tokens: maxTokens ?? MESSAGES_MAX_TOKENS,
      ...system !== '' && { system },
      messages: [{ role: 'user', content: text }],
      ...temperature !== null && { temperature },
      ...stream && { stream: true },
    },
  }),
  generate: ({ model, system, text, maxTokens, temperature, stream }) => ({
    path: generatePath(model, stream),
    body: {
      ...system !== '' && { systemInstruction: { parts: [{ text: system }] } },
      contents: [{ role: 'user', parts: [{ text }] }],
      ...(maxTokens !== null || temperature !== null) && {
        generationConfig: {
          ...maxTokens !== null && { maxOutputTokens: maxTokens },
          ...temperature !== null && { temperature },
        },
      },
    },
  }),
}

function generatePath(model: string, stream: boolean): string {
  // The vendor's SDK leaves slashes in model names unescaped.
  const name = encodeURIComponent(model).replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3D', '=')
  return `/v1beta/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
}
