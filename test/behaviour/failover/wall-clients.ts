import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { KEY } from '../../support/gateway.ts'
import type { Dialect } from './asking.ts'

/** The result of a call. */
export interface Outcome {
  /** The text; null = the client library has thrown. */
  readonly text: string | null
  readonly model?: string | undefined
  readonly outputTokens?: number | undefined
  readonly error?: string
}

type Call = (url: string, model: string, stream: boolean) => Promise<Outcome>

const PROMPT = 'Say sixty words.'

async function chat(url: string, model: string, stream: boolean): Promise<Outcome> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
  const asked = { model, messages: [{ role: 'user' as const, content: PROMPT }] }
  const withUsage = { ...asked, stream_options: { include_usage: true } }
  const { choices, usage, model: served } = stream
    ? await client.chat.completions.stream(withUsage).finalChatCompletion()
    : await client.chat.completions.create(asked)
  return { text: choices[0]?.message.content ?? '', model: served, outputTokens: usage?.completion_tokens }
}

async function messages(url: string, model: string, stream: boolean): Promise<Outcome> {
  const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
  const asked = { model, max_tokens: 1000, messages: [{ role: 'user' as const, content: PROMPT }] }
  const { content, usage, model: served } = stream
    ? await client.messages.stream(asked).finalMessage()
    : await client.messages.create(asked)
  const text = content.map(block => (block.type === 'text' ? block.text : '')).join('')
  return { text, model: served, outputTokens: usage.output_tokens }
}

async function generate(url: string, model: string, stream: boolean): Promise<Outcome> {
  const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } })
  const asked = { model, contents: PROMPT }
  const pieces = stream ? await models.generateContentStream(asked) : [await models.generateContent(asked)]
  let text = ''
  let served: string | undefined
  let outputTokens: number | undefined
  let reason: string | undefined
  for await (const piece of pieces) {
    text += piece.text ?? ''
    served = piece.modelVersion ?? served
    outputTokens = piece.usageMetadata?.candidatesTokenCount ?? outputTokens
    reason = piece.candidates?.[0]?.finishReason ?? reason
  }
  // A cut response is a failure, although this library does not throw.
  return reason ? { text, model: served, outputTokens } : { text: null, error: 'no finish reason' }
}

const CALLS: Record<Dialect['name'], Call> = { chat, messages, generate }

/** Sends a request with the client of the vendor, without retries; an exception is the outcome. */
export async function call(
  url: string, protocol: Dialect['name'], model: string, stream: boolean,
): Promise<Outcome> {
  try {
    return await CALLS[protocol](url, model, stream)
  } catch (thrown) {
    return { text: null, error: (thrown as Error).message }
  }
}
