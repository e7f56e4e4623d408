import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { KEY, gatewayYaml } from './gateway-yaml.ts'

/** How often a function of `src` was called. */
export interface FunctionCalls {
  /** Below `src`. */
  readonly file: string
  readonly name: string
  /** Where it begins in its file: two methods can have the same name. */
  readonly offset: number
  readonly calls: number
}

/** What one request runs through. */
export interface CallCount {
  readonly files: number
  /** Those with a name. */
  readonly functions: number
  readonly calls: number
}

export type CountedRequest = 'unary' | 'stream' | 'translated stream'

/** Events of a stream; the last two have the usage and `[DONE]`. */
const EVENTS = 22
/** So many requests before the counted ones: what is made once is made by then. */
const WARM_UP = 5
/** So many are counted: what only some of them call is the work of timers. */
const COUNTED = 12
const root = join(import.meta.dirname, '..', '..')
const MESSAGES = [{ role: 'user', content: 'x'.repeat(840) }]

/**
 * Counts the calls of `src` for one warm request of each kind, in a gateway that runs from its sources. They do not
 * depend on the machine: each event of a stream arrives by itself.
 *
 * @param dir an empty folder for the configuration and the ledger
 */
export async function countCalls(dir: string): Promise<Record<CountedRequest, readonly FunctionCalls[]>> {
  let gateway: CountedGateway | null = null
  const upstream = createServer((req, res) => void respond(req, res, async () => gateway?.turn())).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  try {
    gateway = await CountedGateway.start(dir, (upstream.address() as AddressInfo).port)
    return {
      unary: await gateway.count('/v1/chat/completions', {}),
      stream: await gateway.count('/v1/chat/completions', { stream: true, stream_options: { include_usage: true } }),
      'translated stream': await gateway.count('/v1/messages', { stream: true, max_tokens: 50 }),
    }
  } finally {
    gateway?.kill()
    upstream.closeAllConnections()
    upstream.close()
  }
}

export function sumOf(functions: readonly FunctionCalls[]): CallCount {
  return {
    files: new Set(functions.map(({ file }) => file)).size,
    functions: functions.length,
    calls: functions.reduce((sum, { calls }) => sum + calls, 0),
  }
}

/** The functions of both, each with the fewer calls. */
function commonCalls(some: readonly FunctionCalls[], others: readonly FunctionCalls[]): FunctionCalls[] {
  const calls = new Map(others.map(of => [placeOf(of), of.calls]))
  return some.flatMap(of => {
    const other = calls.get(placeOf(of))
    return other === undefined ? [] : [{ ...of, calls: Math.min(of.calls, other) }]
  })
}

function placeOf({ file, offset }: FunctionCalls): string {
  return `${file}:${offset}`
}

class CountedGateway {
  readonly #child
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #lines
  #port = 0

  private constructor(file: string) {
    this.#child = spawn(process.execPath, [
      '--import', join(import.meta.dirname, 'count-in-process.mjs'), join(root, 'src/cli/main.ts'), 'serve', '--config', file,
    ], { env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    this.#lines = createInterface(this.#child.stdout as Readable)
  }

  static async start(dir: string, upstreamPort: number): Promise<CountedGateway> {
    const file = join(dir, 'gateway.yaml')
    writeFileSync(file, gatewayYaml(upstreamPort, {
      upstreams: `  chat: { url: "http://127.0.0.1:${upstreamPort}", speaks: [chat] }`,
      routes: '  - { to: { upstream: chat, model: m } }',
      extra: 'telemetry: { prometheus: { listen: 127.0.0.1:0 } }',
    }))
    const gateway = new CountedGateway(file)
    const { base } = await gateway.#logged('listening')
    gateway.#port = Number(new URL(base as string).port)
    return gateway
  }

  /** @returns the calls that each of some equal requests has in common */
  async count(path: string, fields: object): Promise<FunctionCalls[]> {
    const body = JSON.stringify({ model: 'm', messages: MESSAGES, ...fields })
    const counted: FunctionCalls[][] = []
    for (let i = 0; i < WARM_UP + COUNTED; i++) {
      const logged = this.#logged('exchange')
      await this.#send(path, body)
      await logged
      const { calls } = await this.#ask('calls') as { readonly calls: FunctionCalls[] }
      if (i >= WARM_UP) counted.push(calls)
    }
    return counted.reduce(commonCalls)
  }

  /** Resolves when the gateway has read what was sent to it before. */
  async turn(): Promise<void> {
    await this.#ask('turn')
  }

  kill(): void {
    this.#agent.destroy()
    this.#child.kill('SIGKILL')
  }

  /** Resolves when the response is there. */
  async #send(path: string, body: string): Promise<void> {
    const req = request({
      port: this.#port, path, method: 'POST', agent: this.#agent,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': body.length },
    }).end(body)
    const [response] = await once(req, 'response') as [IncomingMessage]
    const received = await text(response)
    if (response.statusCode !== 200) throw new Error(`unexpected response: ${response.statusCode} ${received}`)
  }

  async #ask(what: 'calls' | 'turn'): Promise<unknown> {
    const answered = once(this.#child, 'message')
    this.#child.send(what)
    const [answer] = await answered
    return answer
  }

  /** The next line of the log with that message. */
  async #logged(message: string): Promise<Record<string, unknown>> {
    for await (const [line] of on(this.#lines, 'line', { close: ['close'] })) {
      const fields = JSON.parse(line as string) as Record<string, unknown>
      if (fields['msg'] === message) return fields
    }
    throw new Error('the gateway ended')
  }
}

/** An upstream of the chat protocol. @param arrived resolves when the gateway has read what was sent */
async function respond(req: IncomingMessage, res: ServerResponse, arrived: () => Promise<void>): Promise<void> {
  const usage = { prompt_tokens: 200, completion_tokens: 20, total_tokens: 220 }
  const common = { id: 'chatcmpl-1', created: 1, model: 'm' }
  const { stream } = JSON.parse(await text(req)) as { readonly stream?: boolean }
  if (stream !== true) {
    const choice = { index: 0, message: { role: 'assistant', content: 'x'.repeat(220) }, finish_reason: 'stop' }
    const body = JSON.stringify({ ...common, object: 'chat.completion', choices: [choice], usage })
    res.setHeader('content-type', 'application/json').setHeader('content-length', body.length).end(body)
    return
  }
  res.setHeader('content-type', 'text/event-stream').flushHeaders()
  const event = (choices: readonly object[], rest = {}) =>
    `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices, ...rest })}\n\n`
  for (let i = 0; i < EVENTS - 2; i++) {
    const isLast = i === EVENTS - 3
    res.write(event([{ index: 0, delta: isLast ? {} : { content: 'x'.repeat(60) }, finish_reason: isLast ? 'stop' : null }]))
    await arrived()
  }
  res.write(event([], { usage }))
  await arrived()
  res.end('data: [DONE]\n\n')
}
