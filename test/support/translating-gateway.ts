import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { Test } from 'tap'
import type { JsonObject } from '../../src/protocols/neutral/json.ts'
import { KEY, startTestGateway } from './gateway.ts'
import type { TestGateway } from './gateway.ts'
import { bodyOf, startUpstream } from './upstream.ts'

/** A request to an upstream. */
export interface Seen {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
}

/** A response of an upstream. A text body is an event stream; a function writes the response. */
export interface Response {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: JsonObject | string | ((res: ServerResponse, req: IncomingMessage) => void)
}

/** Sends the start of a stream, and cuts the connection. */
export function cutAfter(text: string): Response {
  return {
    body: res => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(text, () => res.destroy())
    },
  }
}

export interface SpeakingUpstream {
  /** Protocols, as `speaks` lists them. */
  readonly speaks: string
  /** One response for each request; the last response is used for all further requests. */
  readonly responses: readonly Response[]
}

export interface TranslatingGateway {
  readonly gateway: TestGateway
  /** Requests of each upstream. */
  readonly seen: Readonly<Record<string, Seen[]>>
}

/**
 * Upstreams that speak their protocols, and a gateway before them.
 *
 * @param options more lines of the one route
 */
export async function startTranslating(
  t: Test, upstreams: Readonly<Record<string, SpeakingUpstream>>, options = '', top = '',
): Promise<TranslatingGateway> {
  const seen: Record<string, Seen[]> = {}
  const lines: string[] = []
  for (const [name, { speaks, responses }] of Object.entries(upstreams)) {
    const requests: Seen[] = seen[name] = []
    const { url } = await startUpstream(t, async (req, res) => {
      const { body, status = 200, headers } = responses[Math.min(requests.length, responses.length - 1)] as Response
      requests.push({ path: req.url ?? '', headers: req.headers, body: JSON.parse((await bodyOf(req)).toString()) as JsonObject })
      if (typeof body === 'function') {
        body(res, req)
        return
      }
      const isStream = typeof body === 'string'
      res.writeHead(status, { 'content-type': isStream ? 'text/event-stream' : 'application/json', ...headers })
      res.end(isStream ? body : JSON.stringify(body))
    })
    lines.push(`  ${name}: { url: "${url}", speaks: [${speaks}] }`)
  }
  const targets = Object.keys(upstreams).map(name => `{ upstream: ${name}, model: ${name}-model, prefill: true }`).join(', ')
  const gateway = await startTestGateway(t, `${top}upstreams:\n${lines.join('\n')}\nroutes: [{ to: [${targets}]${options} }]\n`)
  return { gateway, seen }
}

export function anthropicClient({ url }: TestGateway): Anthropic {
  return new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
}

export function openaiClient({ url }: TestGateway): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
}

export function genaiClient({ url }: TestGateway): GoogleGenAI {
  return new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } })
}

/** Chunks of a chat stream, with its end. */
export function chatStream(...choices: readonly JsonObject[]): string {
  return chatChunks(...choices) + 'data: [DONE]\n\n'
}

/** Chunks of a chat stream without its end. */
export function chatChunks(...choices: readonly JsonObject[]): string {
  return choices.map(choice => {
    const { usage, ...rest } = choice
    const body = { id: 'chatcmpl-up', object: 'chat.completion.chunk', created: 1, model: 'chat-model', choices: usage ? [] : [{ index: 0, finish_reason: null, ...rest }], ...usage !== undefined && { usage } }
    return `data: ${JSON.stringify(body)}\n\n`
  }).join('')
}

/** Events of a messages stream. */
export function messagesEvents(...events: readonly (JsonObject & { readonly type: string })[]): string {
  return events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

export const MESSAGE_START = {
  type: 'message_start',
  message: {
    id: 'msg_up', type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null, stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 1 },
  },
} as const

/** A text block of a messages stream. */
export function textBlock(index: number, ...texts: readonly string[]): (JsonObject & { readonly type: string })[] {
  return [
    { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
    ...texts.map(text => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } })),
    { type: 'content_block_stop', index },
  ]
}

export function messageEnd(stopReason = 'end_turn', outputTokens = 2): (JsonObject & { readonly type: string })[] {
  return [
    { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: outputTokens } },
    { type: 'message_stop' },
  ]
}
