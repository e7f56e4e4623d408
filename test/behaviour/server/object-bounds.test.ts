import * as http from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { listening } from '../../cli/command.ts'
import type { Running } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

/*
 * A parsed body can need hundreds of times its size. The gateway runs with a small heap: without a
 * bound each of these bodies ends the process.
 */

const HEAP_MB = 384
const LARGE = 3_000_000
const DEEP = 100_000

type Protocol = 'chat' | 'messages' | 'responses' | 'generate'

interface Spoken {
  readonly path: (model: string) => string
  /** Name of the member with the conversation. */
  readonly turns: string
  readonly turn: string
  /** A body with an object whose member names the client chooses. */
  readonly free: (json: string) => string
  readonly response: string
}

const PROTOCOLS: Readonly<Record<Protocol, Spoken>> = {
  chat: {
    path: () => '/v1/chat/completions', turns: 'messages', turn: '{"role":"user","content":"Hi"}',
    free: json => `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":${json}}}}}]`,
    response: '{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}',
  },
  messages: {
    path: () => '/v1/messages', turns: 'messages', turn: '{"role":"user","content":"Hi"}',
    free: json => `"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":${json}}}}]`,
    response: '{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}',
  },
  responses: {
    path: () => '/v1/responses', turns: 'input', turn: '{"role":"user","content":"Hi"}',
    free: json => `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":${json}}}}]`,
    response: '{"id":"r","object":"response","model":"m","status":"completed","output":[]}',
  },
  generate: {
    path: model => `/v1beta/models/${model}:generateContent`, turns: 'contents', turn: '{"role":"user","parts":[{"text":"Hi"}]}',
    free: json => `"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":${json}}}}]}]`,
    response: '{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP"}]}',
  },
}

/** Values that are parsed to many objects, by their description. */
const LARGE_VALUES: Readonly<Record<string, string>> = {
  'empty objects': list('{}'),
  'empty lists': list('[]'),
  'zeros': list('0'),
  'objects with a key of their own': `[${numbered(n => `{"k${n}":0}`)}]`,
  'very many keys': `{${numbered(n => `"k${n}":1`)}}`,
  'strings with escapes': list('"\\u0041\\n"'),
  'nested tools': list('{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":[]}}}}}'),
}

/** Shapes of LARGE_VALUES whose values need little memory. */
const SMALL_SHAPES: ReadonlySet<string> = new Set(['zeros', 'strings with escapes'])

function list(element: string): string {
  return `[${Array(Math.floor(LARGE / (element.length + 1))).fill(element).join(',')}]`
}

function numbered(element: (n: number) => string): string {
  return Array.from({ length: LARGE / 12 }, (_, n) => element(n)).join(',')
}

const DEEP_VALUES: Readonly<Record<string, string>> = {
  lists: '['.repeat(DEEP) + ']'.repeat(DEEP),
  objects: '{"a":'.repeat(DEEP) + '0' + '}'.repeat(DEEP),
}

/** How a request is forwarded; selected by the model name. */
const WAYS = ['translated', 'renamed', 'passed'] as const

const CODINGS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync } as const

interface Sent {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
}

/** A gateway in a separate process, whose upstream sends a valid response or `next`. */
class Bench {
  /** The next response, in place of the valid response. */
  next: { readonly status?: number, readonly type?: string, readonly body: string } | null = null
  readonly #gateway: Running

  constructor(gateway: Running) {
    this.#gateway = gateway
  }

  static async start(t: Test, server = ''): Promise<Bench> {
    let bench: Bench | null = null
    const upstream = await startUpstream(t, (req, res) => {
      req.resume().on('end', () => {
        const own = Object.values(PROTOCOLS).find(({ path }) => (req.url ?? '').endsWith(path('x').slice(-10))) as Spoken
        const { status = 200, type = 'application/json', body } = bench?.next ?? { body: own.response }
        res.writeHead(status, { 'content-type': type, 'content-encoding': 'gzip' }).end(gzipSync(body))
      })
    })
    const names = Object.keys(PROTOCOLS)
    const dir = t.testdir({
      'gateway.yaml': `
server: { listen: 127.0.0.1:0${server} }
upstreams:
${names.map(name => `  ${name}: { url: "${upstream.url}", speaks: [${name}] }`).join('\n')}
routes:
${names.map(name => `  - { model: "translated-${name}", to: { upstream: ${name === 'chat' ? 'messages' : 'chat'}, model: other } }
  - { model: "renamed-${name}", to: { upstream: ${name}, model: other } }
  - { model: "passed-${name}", to: ${name} }`).join('\n')}
keys: [{ name: test, key: ${KEY} }]
log: { level: error }
`,
    })
    const flags = [`--max-old-space-size=${HEAP_MB}`]
    return bench = new Bench(await listening(t, ['serve', '--config', `${dir}/gateway.yaml`], { flags }))
  }

  get base(): string {
    return this.#gateway.base
  }

  /** @param members of the body in addition to the required members */
  async send(protocol: Protocol, way: typeof WAYS[number], members: string, turns: string | null = null, coding: keyof typeof CODINGS = 'gzip'): Promise<Sent> {
    const { path, turns: name, turn } = PROTOCOLS[protocol]
    const model = `${way}-${protocol}`
    const body = `{"model":"${model}","max_tokens":9,"${name}":${turns ?? `[${turn}]`}${members === '' ? '' : `,${members}`}}`
    const response = await fetch(`${this.base}${path(model)}`, {
      method: 'POST', body: CODINGS[coding](protocol === 'generate' ? body.replace(/"model":"[^"]*","max_tokens":9,/, '') : body),
      headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'content-encoding': coding },
    })
    return { status: response.status, headers: Object.fromEntries(response.headers), text: await textOf(response) }
  }
}

/** @returns the received text; the gateway closes the connection after an error in a stream */
async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of body ?? []) chunks.push(chunk as Uint8Array)
  } catch (error) {
    if (chunks.length === 0) throw error
  }
  return Buffer.concat(chunks).toString()
}

const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as Protocol[]

t.test('a request with too many values is refused if it needs translation, and forwarded otherwise', async t => {
  const bench = await Bench.start(t)
  for (const protocol of PROTOCOL_NAMES) {
    for (const [shape, value] of Object.entries(LARGE_VALUES)) {
      for (const way of WAYS) {
        const isRefused = way === 'translated' && !SMALL_SHAPES.has(shape)
        const [large, small] = await Promise.all([
          bench.send(protocol, way, PROTOCOLS[protocol].free(value)), bench.send(protocol, 'translated', ''),
        ])
        t.match([large.status, small.status], [isRefused ? 413 : 200, 200], `${protocol}, ${shape}, ${way}`)
        if (isRefused) t.match(large.text, /too many values to be translated/)
      }
    }
    const turns = await bench.send(protocol, 'translated', '', list('{}'))
    t.equal(turns.status, 413, `${protocol}: empty turns`)
  }
})

t.test('values and levels are counted in every content coding', async t => {
  const bench = await Bench.start(t)
  for (const coding of ['deflate', 'br', 'zstd'] as const) {
    t.match(await bench.send('chat', 'translated', '', list('{}'), coding), { status: 413, text: /too many values to be translated/ }, `${coding}: values`)
    t.match(await bench.send('messages', 'passed', '', DEEP_VALUES['lists'], coding), { status: 400, text: /nested more than 1000 levels deep/ }, `${coding}: levels`)
    t.match(await bench.send('chat', 'translated', '', null, coding), { status: 200 })
  }
})

t.test('a request that is nested too deeply is refused, and the error names the member', async t => {
  const bench = await Bench.start(t)
  for (const protocol of PROTOCOL_NAMES) {
    for (const [shape, value] of Object.entries(DEEP_VALUES)) {
      for (const way of WAYS) {
        const inTools = await bench.send(protocol, way, PROTOCOLS[protocol].free(value))
        t.match([inTools.status, inTools.text], [400, /tools\[0\]\.[^"]*: it is nested more than 1000 levels deep/], `${protocol}, ${shape}, ${way}`)
        const inTurns = await bench.send(protocol, way, '', value)
        t.match([inTurns.status, inTurns.text], [400, new RegExp(`${PROTOCOLS[protocol].turns}[.[][^"]*: it is nested`)])
      }
    }
  }
})

t.test('when memory is in use, a large request that needs translation gets 503, and other requests are served', async t => {
  const bench = await Bench.start(t, ', body_memory: 64mb, body_limit: 32mb')
  const turns = `[${Array(30_000).fill(PROTOCOLS.chat.turn).join(',')}]`
  const holder = http.request(`${bench.base}/v1/chat/completions`, {
    method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': 20_000_002 },
  }).on('error', () => {})
  holder.write(`"${'x'.repeat(20_000_000)}`)
  const held = async (): Promise<number> => {
    const status = await (await fetch(`${bench.base}/api/status`)).json() as { readonly body_bytes: number }
    return status.body_bytes
  }
  while (await held() < 20_000_000);
  const refused = await bench.send('chat', 'translated', '', turns)
  t.match(refused, { status: 503, headers: { 'retry-after': '1' }, text: /overloaded/ })
  t.match(await bench.send('chat', 'passed', '', turns), { status: 200 })
  t.match(await bench.send('chat', 'translated', ''), { status: 200 })
  holder.destroy()
  while (await held() > 0);
  t.match(await bench.send('chat', 'translated', '', turns), { status: 200 })
})

t.test('the values inside the arguments of tool calls count towards the limit', async t => {
  const bench = await Bench.start(t)
  const call = (text: string): string => JSON.stringify({ id: 'c', type: 'function', function: { name: 'f', arguments: text } })
  const turns = (calls: readonly string[]): string => `[${PROTOCOLS.chat.turn},{"role":"assistant","content":null,"tool_calls":[${calls.join(',')}]}]`
  const one = await bench.send('chat', 'translated', '', turns([call(`{"a":${list('[]')}}`)]))
  t.match(one, { status: 413, text: /arguments/ })
  const small = `{"a":[${Array(1_000).fill('[]').join(',')}]}`
  const many = await bench.send('chat', 'translated', '', turns(Array<string>(1_000).fill(call(small))))
  t.match(many, { status: 413, text: /arguments/ })
})

t.test('a response with too many values or levels is not translated, but is forwarded if no translation is needed', async t => {
  const bench = await Bench.start(t)
  const values = { 'empty objects': LARGE_VALUES['empty objects'], 'lists, deep': DEEP_VALUES['lists'], 'objects, deep': DEEP_VALUES['objects'] }
  for (const protocol of PROTOCOL_NAMES) {
    const other = PROTOCOLS[protocol === 'chat' ? 'messages' : 'chat']
    for (const [shape, value] of Object.entries(values)) {
      bench.next = { body: other.response.replace('{', `{"more":${value},`) }
      const whole = await bench.send(protocol, 'translated', '')
      t.match(whole, { status: 502, text: shape.endsWith('deep') ? /a body that is nested more than 1000 levels deep/ : /a body that has too many values/ }, `${protocol}, ${shape}, a body`)

      bench.next = { type: 'text/event-stream', body: `data: ${bench.next.body}\n\n` }
      const streamed = await bench.send(protocol, 'translated', protocol === 'generate' ? '' : '"stream":true')
      t.match(streamed.text, shape.endsWith('deep') ? /is nested more than 1000 levels deep/ : /has too many values|upstream/, `${protocol}, ${shape}, an event`)

      bench.next = { status: 400, body: `{"error":{"message":"No","details":${value}}}` }
      const failed = await bench.send(protocol, 'translated', '')
      t.equal(failed.status, 400, `${protocol}, ${shape}, an error`)

      bench.next = { body: PROTOCOLS[protocol].response.replace('{', `{"more":${value},`) }
      const passed = await bench.send(protocol, 'passed', '')
      t.match(passed, { status: 200, text: /^\{"more"/ }, `${protocol}, ${shape}, passed`)
    }
    bench.next = null
    t.match(await bench.send(protocol, 'translated', ''), { status: 200 })
  }
})
