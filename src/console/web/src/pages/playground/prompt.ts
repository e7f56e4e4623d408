/** A prompt, and the request that it is in each protocol. */

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
  /** Empty = none. */
  readonly system: string
  readonly text: string
  /** null = the request names no bound, except where the protocol demands one. */
  readonly maxTokens: number | null
  readonly temperature: number | null
  readonly stream: boolean
}

export interface Call {
  /** With its query, as it is below the base URL. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

/** The messages protocol demands a bound. */
export const MESSAGES_MAX_TOKENS = 1024
export const MESSAGES_VERSION = '2023-06-01'

/** @returns what a client of the prompt's protocol would send; credentials are not part of it */
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
  // A slash in a name is part of the path there, as the vendor's own SDK has it.
  const name = encodeURIComponent(model).replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3D', '=')
  return `/v1beta/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
}
