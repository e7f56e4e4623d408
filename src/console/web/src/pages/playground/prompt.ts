/** Builds the request for a prompt in each protocol. */
import type { Tool } from './tools.ts'

export const PROTOCOLS = ['chat', 'responses', 'messages', 'generate'] as const
export type Protocol = (typeof PROTOCOLS)[number]

export const PROTOCOL_NAMES: Readonly<Record<Protocol, string>> = {
  chat: 'Chat completions',
  responses: 'Responses',
  messages: 'Messages',
  generate: 'Generate content',
}

/** Protocols with stop sequences: all except Responses. */
export const PROTOCOLS_WITH_STOP: readonly Protocol[] = ['chat', 'messages', 'generate']

export interface Image {
  /** Name of the image's file. */
  readonly name: string
  readonly mediaType: string
  /** Base64 */
  readonly data: string
}

export interface Prompt {
  readonly protocol: Protocol
  readonly model: string
  /** The system prompt; empty = none. */
  readonly system: string
  readonly text: string
  readonly images: readonly Image[]
  readonly tools: readonly Tool[]
  /** Maximum output tokens; null = omitted, unless the protocol requires a value. */
  readonly maxTokens: number | null
  readonly temperature: number | null
  readonly topP: number | null
  /** Stop sequences. */
  readonly stop: readonly string[]
  readonly stream: boolean
}

export interface Call {
  /** Path after the base URL, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

/** Used if no maximum is set, because the Messages protocol requires max_tokens. */
export const MESSAGES_MAX_TOKENS = 1024
const MESSAGES_VERSION = '2023-06-01'

/** @returns the request as a client of the prompt's protocol sends it, without credentials */
export function callOf(prompt: Prompt): Call {
  return { headers: {}, ...CALLS[prompt.protocol](prompt) }
}

const CALLS: Readonly<Record<Protocol, (prompt: Prompt) => Omit<Call, 'headers'> & Partial<Call>>> = {
  chat: ({ model, system, text, images, tools, maxTokens, temperature, topP, stop, stream }) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      messages: [
        ...system === '' ? [] : [{ role: 'system', content: system }],
        {
          role: 'user',
          content: images.length === 0 ? text
            : [{ type: 'text', text }, ...images.map(image => ({ type: 'image_url', image_url: { url: dataUrl(image) } }))],
        },
      ],
      ...tools.length > 0 && { tools: tools.map(tool => ({ type: 'function', function: tool })) },
      ...maxTokens !== null && { max_tokens: maxTokens },
      ...temperature !== null && { temperature },
      ...topP !== null && { top_p: topP },
      ...stop.length > 0 && { stop },
      ...stream && { stream: true, stream_options: { include_usage: true } },
    },
  }),
  responses: ({ model, system, text, images, tools, maxTokens, temperature, topP, stream }) => ({
    path: '/v1/responses',
    body: {
      model,
      ...system !== '' && { instructions: system },
      input: images.length === 0 ? text : [{
        role: 'user',
        content: [
          { type: 'input_text', text },
          ...images.map(image => ({ type: 'input_image', detail: 'auto', image_url: dataUrl(image) })),
        ],
      }],
      ...tools.length > 0 && { tools: tools.map(tool => ({ type: 'function', strict: false, ...tool })) },
      ...maxTokens !== null && { max_output_tokens: maxTokens },
      ...temperature !== null && { temperature },
      ...topP !== null && { top_p: topP },
      ...stream && { stream: true },
    },
  }),
  messages: ({ model, system, text, images, tools, maxTokens, temperature, topP, stop, stream }) => ({
    path: '/v1/messages',
    headers: { 'anthropic-version': MESSAGES_VERSION },
    body: {
      model,
      max_tokens: maxTokens ?? MESSAGES_MAX_TOKENS,
      ...system !== '' && { system },
      messages: [{
        role: 'user',
        content: images.length === 0 ? text : [
          ...images.map(({ mediaType, data }) => ({ type: 'image', source: { type: 'base64', media_type: mediaType, data } })),
          { type: 'text', text },
        ],
      }],
      ...tools.length > 0 && { tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })) },
      ...temperature !== null && { temperature },
      ...topP !== null && { top_p: topP },
      ...stop.length > 0 && { stop_sequences: stop },
      ...stream && { stream: true },
    },
  }),
  generate: prompt => {
    const { model, system, tools, stream } = prompt
    const config = generationConfig(prompt)
    return {
      path: generatePath(model, stream),
      body: {
        ...system !== '' && { systemInstruction: { role: 'user', parts: [{ text: system }] } },
        contents: [{ role: 'user', parts: generateParts(prompt) }],
        ...tools.length > 0 && { tools: generateTools(tools) },
        ...Object.keys(config).length > 0 && { generationConfig: config },
      },
    }
  },
}

export function generateParts({ text, images }: Pick<Prompt, 'text' | 'images'>): Record<string, unknown>[] {
  return [{ text }, ...images.map(({ mediaType, data }) => ({ inlineData: { mimeType: mediaType, data } }))]
}

export function generateTools(tools: readonly Tool[]): Record<string, unknown>[] {
  return [{ functionDeclarations: tools.map(({ parameters, ...tool }) => ({ ...tool, parametersJsonSchema: parameters })) }]
}

export function generationConfig({ maxTokens, temperature, topP, stop }: Prompt): Record<string, unknown> {
  return {
    ...maxTokens !== null && { maxOutputTokens: maxTokens },
    ...temperature !== null && { temperature },
    ...topP !== null && { topP },
    ...stop.length > 0 && { stopSequences: stop },
  }
}

function dataUrl({ mediaType, data }: Image): string {
  return `data:${mediaType};base64,${data}`
}

function generatePath(model: string, stream: boolean): string {
  // Do not escape slashes in the name of the model, because Google's SDK does not escape them.
  const name = encodeURIComponent(model).replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3D', '=')
  return `/v1beta/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
}
