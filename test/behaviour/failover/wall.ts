import type * as http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import type { Dialect } from './asking.ts'

/** The text of each complete response: sixty words, so that a part cannot be mistaken for the whole. */
export const ANSWER = Array.from({ length: 60 }, (_, n) => `word${n + 1}`).join(' ')
const WORDS = ANSWER.split(' ')

export interface WallTimes {
  /** Whole seconds. */
  readonly retryAfter: number
  /** This and all following times are in ms. */
  readonly slowFirst: number
  readonly stall: number
  readonly silence: number
  /** Counted from the first request. */
  readonly down: number
  readonly perWord: number
}

/** Short times for tests. */
export const QUICK: WallTimes = {
  retryAfter: 1, slowFirst: 20_000, stall: 20_000, silence: 60_000, down: 1_200, perWord: 1,
}

export interface Seen {
  readonly model: string
  /** ms since the start of the provider. */
  readonly at: number
  /** Was the last message from the assistant? */
  readonly prefill: boolean
  /** Did the request get a response without a fault? */
  readonly served: boolean
}

export interface Wall {
  readonly url: string
  readonly times: WallTimes
  /** All requests so far. */
  readonly seen: readonly Seen[]
}

/**
 * A provider that breaks in one way for each model, in three protocols: the
 * sixteen faults of the public Failover Bench (methodology 0.1), by its names.
 */
export async function startWall(t: Pick<Test, 'teardown'>, times: WallTimes = QUICK): Promise<Wall> {
  const seen: Seen[] = []
  const began = performance.now()
  const { url } = await startUpstream(t as Test, async (req, res) => {
    const asked = read(req, await bodyOf(req))
    const before = seen.filter(({ model }) => model === asked.model)
    const at = performance.now() - began
    const isDown = at - (before[0]?.at ?? at) < times.down
    const fault = faultOf(asked, before.length + 1, isDown)
    seen.push({ model: asked.model, at, prefill: asked.prefill !== null, served: fault === null })
    await answer(req, res, asked, fault, times)
  })
  return { url, times, seen }
}

interface Asked {
  readonly protocol: Dialect['name']
  readonly model: string
  readonly stream: boolean
  /** The text of the last message if it is from the assistant; else null. */
  readonly prefill: string | null
  readonly usage: boolean
}

interface Message {
  readonly role?: string
  readonly content?: string | readonly { readonly text?: string }[]
  readonly parts?: readonly { readonly text?: string }[]
}

function read({ url = '' }: http.IncomingMessage, body: Buffer): Asked {
  const value = JSON.parse(body.toString())
  const generate = /models\/(?<model>[^:]+):(?<verb>\w+)/.exec(url)?.groups
  const last = ((value.messages ?? value.contents) as Message[]).at(-1)
  const own = last?.role === 'assistant' || last?.role === 'model'
  return {
    protocol: generate ? 'generate' : url.includes('/messages') ? 'messages' : 'chat',
    model: generate?.model ?? value.model,
    stream: generate ? generate.verb === 'streamGenerateContent' : value.stream === true,
    prefill: own ? textOf(last) : null,
    usage: value.stream_options?.include_usage === true,
  }
}

function textOf({ content, parts }: Message): string {
  if (typeof content === 'string') return content
  return (content ?? parts ?? []).map(({ text }) => text ?? '').join('')
}

type Fault =
  | { readonly status: number; readonly word: string; readonly headers?: 'retry-after' }
  | 'reset' | 'silence' | 'slow' | 'cut' | 'stall' | 'malformed' | 'no_end'

const TOO_LONG = {
  chat: "This model's maximum context length is 8192 tokens.",
  messages: 'prompt is too long: 9631 tokens > 8192 maximum',
  generate: 'The input token count (9631) exceeds the maximum number of tokens allowed (8192).',
}

function faultOf({ model, prefill, protocol }: Asked, attempt: number, isDown: boolean): Fault | null {
  const overloaded = { status: 503, word: 'overloaded' }
  const isFirst = attempt === 1
  if (model === 'fb-ok-noprefill') return prefill === null ? null : { status: 400, word: 'no prefill here' }
  switch (/^fb-(s\d\d)/.exec(model)?.[1]) {
    case 's01':
      return isFirst ? { status: 429, word: 'rate_limit_exceeded', headers: 'retry-after' } : null
    case 's02':
      return { status: 429, word: 'rate_limit_exceeded' }
    case 's03':
      return isFirst ? { status: 500, word: 'server_error' } : null
    case 's04':
    case 's16':
      return overloaded
    case 's05':
      return isFirst ? 'reset' : null
    case 's06':
      return 'silence'
    case 's07':
      return 'slow'
    case 's08':
    case 's14':
      return 'cut'
    case 's09':
      return 'stall'
    case 's10':
      return 'malformed'
    case 's11':
      return 'no_end'
    case 's12':
      return { status: 400, word: TOO_LONG[protocol] }
    case 's13':
      return { status: 400, word: 'content_policy_violation' }
    case 's15':
      return isDown ? overloaded : null
    default:
      return null
  }
}

async function answer(
  { socket }: http.IncomingMessage, res: http.ServerResponse, asked: Asked,
  fault: Fault | null, times: WallTimes,
): Promise<void> {
  if (fault === 'reset') {
    socket.resetAndDestroy()
  } else if (fault === 'silence') {
    await pause(res, times.silence)
    res.destroy()
  } else if (typeof fault === 'object' && fault !== null) {
    const headers = fault.headers ? { 'retry-after': String(times.retryAfter) } : {}
    res.writeHead(fault.status, { 'content-type': 'application/json', ...headers })
    res.end(JSON.stringify(refusal(asked.protocol, fault.status, fault.word)))
  } else {
    const from = asked.prefill && ANSWER.startsWith(asked.prefill) ? asked.prefill.split(' ').length : 0
    await (asked.stream ? stream : whole)(res, asked, from, fault, times)
  }
}

function refusal(protocol: Dialect['name'], status: number, word: string): object {
  switch (protocol) {
    case 'chat': {
      const code = word === TOO_LONG.chat ? 'context_length_exceeded' : word
      return { error: { message: `refused: ${word}`, type: 'invalid_request_error', param: null, code } }
    }
    case 'messages':
      return { type: 'error', error: { type: 'invalid_request_error', message: word } }
    case 'generate':
      return { error: { code: status, message: word, status: 'INVALID_ARGUMENT' } }
  }
}

async function stream(
  res: http.ServerResponse, asked: Asked, from: number, fault: Fault | null, times: WallTimes,
): Promise<void> {
  const events = script(asked, from)
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  res.flushHeaders()
  if (fault === 'slow') await pause(res, times.slowFirst)
  res.write(events.opening)
  for (const [index, event] of events.words.entries()) {
    if (res.destroyed) return
    if (fault === 'cut' && index === 40) break
    if (fault === 'stall' && index === 20) await pause(res, times.stall)
    if (fault === 'malformed' && index === 10) res.write('data: {"choices": [{"delta": {"content": \n\n')
    await new Promise(resolve => res.write(event, resolve))
    await sleep(times.perWord)
  }
  if (fault === 'cut' || fault === 'stall') {
    res.destroy()
    return
  }
  res.end(fault === 'no_end' ? events.ending : events.ending + events.sentinel)
}

async function whole(
  res: http.ServerResponse, asked: Asked, from: number, fault: Fault | null, times: WallTimes,
): Promise<void> {
  const body = JSON.stringify(wholeAnswer(asked, from))
  if (fault === 'slow') await pause(res, times.slowFirst)
  const sent = fault === 'malformed' ? `${body.slice(0, body.length / 2)}"oops` : body
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': sent.length })
  if (fault === 'stall') {
    res.flushHeaders()
    await pause(res, times.stall)
    res.destroy()
  } else if (fault === 'cut') {
    res.write(sent.slice(0, sent.length * 0.6), () => res.destroy())
  } else {
    res.end(sent)
  }
}

/** Pauses for `ms`, or until the client disconnects. */
async function pause(res: http.ServerResponse, ms: number): Promise<void> {
  const gone = new AbortController()
  const leave = () => gone.abort()
  res.once('close', leave)
  await sleep(ms, undefined, { signal: gone.signal }).catch(() => {})
  res.off('close', leave)
}

interface Script {
  readonly opening: string
  readonly words: readonly string[]
  readonly ending: string
  /** The end of a stream in the protocol, after the last content. */
  readonly sentinel: string
}

function script(asked: Asked, from: number): Script {
  const texts = WORDS.slice(from).map((word, index) => (from + index > 0 ? ` ${word}` : word))
  const [input, output] = [20, texts.length]
  const { model } = asked
  switch (asked.protocol) {
    case 'chat': {
      const event = (delta: object, finish_reason: string | null) => data({
        id: 'c1', object: 'chat.completion.chunk', model, choices: [{ index: 0, delta, finish_reason }],
      })
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
      return {
        opening: event({ role: 'assistant', content: '' }, null),
        words: texts.map(content => event({ content }, null)),
        ending: event({}, 'stop') + (asked.usage
          ? data({ id: 'c1', object: 'chat.completion.chunk', model, choices: [], usage })
          : ''),
        sentinel: 'data: [DONE]\n\n',
      }
    }
    case 'messages':
      return {
        opening: named({
          type: 'message_start',
          message: {
            id: 'm1', type: 'message', role: 'assistant', model, content: [], stop_reason: null,
            usage: { input_tokens: input, output_tokens: 1 },
          },
        }) + named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        words: texts.map(text => {
          return named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
        }),
        ending: named({ type: 'content_block_stop', index: 0 }) + named({
          type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: output },
        }),
        sentinel: named({ type: 'message_stop' }),
      }
    case 'generate': {
      const event = (text: string, more: object, usage: object) => data({
        candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
        modelVersion: model,
        ...usage,
      })
      const usageMetadata = usageOf(input, output)
      return {
        opening: '',
        words: texts.map(text => event(text, {}, {})),
        ending: event('', { finishReason: 'STOP' }, { usageMetadata }),
        sentinel: '',
      }
    }
  }
}

function wholeAnswer({ protocol, model }: Asked, from: number): object {
  const text = (from > 0 ? ' ' : '') + WORDS.slice(from).join(' ')
  const [input, output] = [20, WORDS.length - from]
  switch (protocol) {
    case 'chat':
      return {
        id: 'c1', object: 'chat.completion', model,
        choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
        usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
      }
    case 'messages':
      return {
        id: 'm1', type: 'message', role: 'assistant', model, content: [{ type: 'text', text }],
        stop_reason: 'end_turn', usage: { input_tokens: input, output_tokens: output },
      }
    case 'generate':
      return {
        candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
        modelVersion: model,
        usageMetadata: usageOf(input, output),
      }
  }
}

function usageOf(input: number, output: number): object {
  return { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output }
}

function data(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function named(event: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${event.type}\n${data(event)}`
}
