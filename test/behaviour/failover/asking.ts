import type { Test } from 'tap'
import type { RunningGateway } from '../../../src/gateway/server.ts'
import { gather, parseEvents } from '../../simulator/start.ts'
import { KEY } from '../../support/gateway.ts'
import { CONSOLE, operatorOf } from '../../support/operator.ts'

/** A protocol in which a test sends requests. */
export interface Dialect {
  readonly name: 'chat' | 'messages' | 'generate'
  path(model: string, stream: boolean): string
  body(model: string, stream: boolean): object
  /** The text of a whole response. */
  text(answer: string): string
  /** The text of a stream. */
  streamed(answer: string): string
  /** Does the stream have the end of the protocol? */
  isWhole(answer: string): boolean
  /** Does the response contain an error in the shape of the protocol? */
  tellsError(answer: string): boolean
}

const PROMPT = 'Count to sixteen.'

export const DIALECTS: readonly Dialect[] = [
  {
    name: 'chat',
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({ model, stream, messages: [{ role: 'user', content: PROMPT }] }),
    text: answer => JSON.parse(answer).choices[0].message.content,
    streamed: answer => gather(parseEvents(answer), 'choices', 0, 'delta', 'content'),
    isWhole: answer => answer.trimEnd().endsWith('data: [DONE]'),
    tellsError: answer => /^data: \{"error":\{/m.test(answer),
  },
  {
    name: 'messages',
    path: () => '/v1/messages',
    body: (model, stream) => ({
      model, stream, max_tokens: 100, messages: [{ role: 'user', content: PROMPT }],
    }),
    text: answer => JSON.parse(answer).content[0].text,
    streamed: answer => gather(parseEvents(answer), 'delta', 'text'),
    isWhole: answer => /event: message_stop\ndata: .*\n\n$/.test(answer),
    tellsError: answer => /^event: error\ndata: \{"type":"error"/m.test(answer),
  },
  {
    name: 'generate',
    path: (model, stream) =>
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: PROMPT }] }] }),
    text: answer => JSON.parse(answer).candidates[0].content.parts[0].text,
    streamed: answer => gather(parseEvents(answer), 'candidates', 0, 'content', 'parts', 0, 'text'),
    isWhole: answer => /"finishReason":"STOP"/.test(answer),
    tellsError: answer => /^data: \{"error":\{"code":\d+/m.test(answer),
  },
]

/** The default text of the simulator. */
export const WORDS = Array.from({ length: 16 }, (_, n) => `w${n + 1}`).join(' ')

export interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  /** Has the HTTP response ended correctly? */
  readonly whole: boolean
  /** The generated text; empty if the response has none. */
  readonly text: string
}

export interface AskOptions {
  readonly model?: string
  readonly stream?: boolean
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
  readonly body?: object
}

/** Sends a request in the protocol, and reads the response until it ends or is cut. */
export async function ask(
  gateway: Pick<RunningGateway, 'addresses'>, dialect: Dialect, options: AskOptions = {},
): Promise<Asked> {
  const { model = 'm', stream = false, headers = {}, signal, body } = options
  const answer = await fetch(gateway.addresses.base + dialect.path(model, stream), {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...dialect.body(model, stream), ...body }),
    ...(signal ? { signal } : {}),
  })
  const decoder = new TextDecoder()
  let text = ''
  let whole = true
  try {
    for await (const chunk of answer.body ?? []) text += decoder.decode(chunk as Uint8Array, { stream: true })
  } catch {
    whole = false
  }
  return {
    status: answer.status, headers: answer.headers, body: text, whole,
    text: textOf(dialect, answer, stream, text),
  }
}

function textOf(dialect: Dialect, { ok }: Response, stream: boolean, body: string): string {
  if (stream) return dialect.streamed(body)
  try {
    return ok ? dialect.text(body) : ''
  } catch {
    return ''
  }
}

/** Settings for tests that read the status. */
export const WITH_STATUS = `server: { listen: 127.0.0.1:0, reveal_upstream: true }\n${CONSOLE}`

/** @returns the status of each candidate that got requests, in the order of the first requests */
export async function candidatesOf({ addresses }: Pick<RunningGateway, 'addresses'>): Promise<object[]> {
  const status = await operatorOf(addresses.console)
  return [...(await status()).upstreams]
}

/** Adds a test for each protocol, with and without a stream. */
export function everyWay(
  t: Test, what: string, test: (t: Test, dialect: Dialect, stream: boolean) => Promise<void>,
  streams = [false, true],
): void {
  for (const dialect of DIALECTS) {
    for (const stream of streams) {
      t.test(`${what}: ${dialect.name}, ${stream ? 'streamed' : 'whole'}`, t => test(t, dialect, stream))
    }
  }
}

/** @returns YAML with a route for all models to two targets, in this order */
export function twoTargets(a: string, b: string, first: string, second: string, rest = ''): string {
  return `
upstreams:
  a: { url: "${a}" }
  b: { url: "${b}" }
routes:
  - to: [{ upstream: a, model: "${first}" }, { upstream: b, model: "${second}" }]
${rest}
`
}
