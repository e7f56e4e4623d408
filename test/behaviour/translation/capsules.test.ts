import { deflateRawSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { providerTag } from '../../../src/protocols/neutral/opaque.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { chat, conversation as chatConversation, startThinkingUpstream } from '../../support/thinking-upstream.ts'
import type { ThinkingUpstream } from '../../support/thinking-upstream.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { withFolder } from '../../support/folder.ts'
import type { FolderOwner } from '../../support/folder.ts'

type Json = Record<string, unknown>

/** Requests of a protocol, and the response of its upstream. */
interface ProtocolCase {
  readonly path: string
  /** A conversation with one value in each place of a capsule. */
  readonly conversation: (values: readonly string[]) => Json
  /** The fields that are reported if the values are not valid capsules. */
  readonly fields: readonly string[]
  readonly response: Json
}

const PROTOCOLS: Readonly<Record<string, ProtocolCase>> = {
  chat: {
    path: '/v1/chat/completions',
    conversation: chatConversation,
    fields: ['messages[].tool_calls[].id', 'messages[].tool_call_id'],
    response: {
      id: 'c', object: 'chat.completion', created: 1, model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Seen' }, finish_reason: 'stop' }],
    },
  },
  messages: {
    path: '/v1/messages',
    conversation: values => ({
      model: 'm', max_tokens: 9, messages: [
        { role: 'user', content: 'Look' },
        {
          role: 'assistant', content: values.flatMap(value => [
            { type: 'thinking', thinking: 'Hm.', signature: value }, { type: 'tool_use', id: value, name: 'look', input: {} },
          ]),
        },
        { role: 'user', content: values.map(value => ({ type: 'tool_result', tool_use_id: value, content: 'ok' })) },
      ],
    }),
    fields: ['messages[].content[].signature', 'messages[].content[].id', 'messages[].content[].tool_use_id'],
    response: {
      id: 'm', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'Seen' }], stop_reason: 'end_turn', stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  responses: {
    path: '/v1/responses',
    conversation: values => ({
      model: 'm', input: [
        { role: 'user', content: 'Look' }, ...values.map(value => ({ type: 'reasoning', summary: [], encrypted_content: value })),
      ],
    }),
    fields: ['input[].encrypted_content'],
    response: {
      id: 'r', object: 'response', created_at: 1, status: 'completed', model: 'm',
      output: [{ type: 'message', id: 'o', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Seen', annotations: [] }] }],
    },
  },
  generate: {
    path: '/v1beta/models/m:generateContent',
    conversation: values => ({
      contents: [
        { role: 'user', parts: [{ text: 'Look' }] },
        { role: 'model', parts: values.map(value => ({ text: 'Hm.', thought: true, thoughtSignature: value })) },
        { role: 'user', parts: [{ text: 'Go on' }] },
      ],
    }),
    fields: ['contents[].parts[].thoughtSignature'],
    response: { candidates: [{ content: { role: 'model', parts: [{ text: 'Seen' }] }, finishReason: 'STOP', index: 0 }] },
  },
}

interface Served {
  readonly gateway: TestGateway
  /** The bodies of the requests to the upstream. */
  readonly seen: string[]
  readonly host: string
}

/** @param speaks null = the upstream gets each request without translation */
async function serve(t: Test, protocol: string, { speaks = protocol, route = '' }: {
  readonly speaks?: string | null, readonly route?: string
} = {}): Promise<Served> {
  const seen: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    seen.push((await bodyOf(req)).toString())
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify(PROTOCOLS[protocol]!.response))
  })
  const speaking = speaks === null ? '' : `, speaks: [${speaks}]`
  const gateway = await startTestGateway(t, `upstreams: { up: { url: "${url}"${speaking} } }\nroutes: [{ to: up${route} }]\n`)
  return { gateway, seen, host: new URL(url).host }
}

async function ask({ url }: TestGateway, protocol: string, body: Json): Promise<{ status: number, dropped: readonly string[], body: Json }> {
  const response = await fetch(url + PROTOCOLS[protocol]!.path, {
    method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' }, body: JSON.stringify(body),
  })
  const dropped = response.headers.get('x-gateway-dropped')?.split(', ') ?? []
  return { status: response.status, dropped, body: await response.json() as Json }
}

/** A capsule without authentication, as earlier versions made them: 1.4 kB that inflate to a megabyte. */
function forged(tag: string, n = 0): string {
  const value = `${n}${'x'.repeat(500_000)}`
  return `Gateway1${deflateRawSync(JSON.stringify([`call_${n}`, [tag, value], [[value, [tag, 'sig']]]])).toString('base64url')}`
}

for (const [client, { conversation, fields }] of Object.entries(PROTOCOLS)) {
  for (const target of [client, null, ...Object.keys(PROTOCOLS).filter(name => name !== client)]) {
    const name = target === null ? 'an upstream without the setting speaks' : `a ${target} upstream`
    t.test(`forged capsules from a ${client} client to ${name} are dropped, and the response names their fields`, async t => {
      const { gateway, seen, host } = await serve(t, target ?? client, { speaks: target })
      const capsule = forged(providerTag(target ?? client, host))
      const body = conversation(Array.from({ length: 150 }, () => capsule))
      const { status, dropped } = await ask(gateway, client, body)
      t.equal(status, 200)
      const sent = seen[0] as string
      t.ok(sent.length < JSON.stringify(body).length, `${sent.length} bytes`)
      t.equal(/Gateway1|xxx/.test(sent), false)
      t.strictSame(fields.filter(field => !dropped.includes(field)), [], dropped.join())
    })
  }
}

for (const target of ['chat', 'messages']) {
  t.test(`a route with translate: strict to a ${target} upstream refuses forged capsules`, async t => {
    const { gateway, seen } = await serve(t, target, { route: ', translate: strict' })
    const { status, body } = await ask(gateway, 'chat', PROTOCOLS['chat']!.conversation([forged('tag')]))
    t.equal(status, 400)
    t.match(body, { error: { code: 'translation_lossy', param: 'messages[].tool_calls[].id' } })
    t.equal(seen.length, 0)
  })
}

t.test('6,000 forged capsules take about as long as 6,000 other texts', async t => {
  const { gateway } = await serve(t, 'chat')
  const time = async (value: (n: number) => string): Promise<number> => {
    const body = PROTOCOLS['generate']!.conversation(Array.from({ length: 6000 }, (_, n) => value(n)))
    const start = performance.now()
    t.equal((await ask(gateway, 'generate', body)).status, 200)
    return performance.now() - start
  }
  const capsule = forged('tag').padEnd(1400, 'A')
  await time(() => 'x'.repeat(1400))
  const [plain, marked] = [await time(n => `${n}${'x'.repeat(1400)}`), await time(() => capsule)]
  t.ok(marked < 4 * plain + 250, `${Math.round(marked)} ms, and ${Math.round(plain)} ms`)
})

t.test('a capsule that was changed or moved is ignored', async t => {
  const upstream = await startThinkingUpstream(t)
  const gateway = await before(t, upstream)
  const capsule = await upstream.capsuleOf(gateway)
  t.equal(await upstream.comesBack(gateway, capsule), true)
  t.equal(await upstream.comesBack(gateway, capsule.slice(0, -4) + (capsule.endsWith('AAAA') ? 'BAAA' : 'AAAA')), false)
  t.equal(await upstream.comesBack(gateway, `${capsule}AAAA`), false)
  const { dropped } = await ask(gateway, 'messages', {
    model: 'm', max_tokens: 9, messages: [
      { role: 'user', content: 'Look' }, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: capsule }, { type: 'text', text: 'a' }] },
      { role: 'user', content: 'Go on' },
    ],
  })
  t.strictSame(dropped, ['messages[].content[].signature'])
  t.equal((upstream.seen.at(-1) as string).includes('"sig"'), false)
})

t.test('the content of capsules counts against body_limit and body_memory', async t => {
  const upstream = await startThinkingUpstream(t, 'ha '.repeat(30_000))
  for (const [memory, limit, status, code] of [['8mb', '1mb', 413, 'body_too_large'], ['2mb', '2mb', 503, 'overloaded']] as const) {
    const gateway = await before(t, upstream, `server: { listen: 127.0.0.1:0, body_limit: ${limit}, body_memory: ${memory} }\n`)
    const capsule = await upstream.capsuleOf(gateway)
    const sent = upstream.seen.length
    const response = await chat(gateway, Array.from({ length: 12 }, () => capsule))
    t.equal(response.status, status)
    t.match(await response.json(), { error: { code } })
    t.equal(upstream.seen.length, sent)
    t.equal(await upstream.comesBack(gateway, capsule), true, 'the memory is free again')
  }
})

t.test('capsules stay valid over a restart if the gateway has a ledger', async t => {
  const upstream = await startThinkingUpstream(t)
  for (const [ledger, isKept] of [['ledger: { file: data/gateway.db }\n', true], ['', false]] as const) {
    const machine = withFolder(t)
    const first = await before(machine, upstream, ledger)
    const capsule = await upstream.capsuleOf(first)
    await first.close()
    const again = await before(machine, upstream, ledger)
    t.equal(await upstream.comesBack(again, capsule), isKept)
  }
})

function before(t: FolderOwner, { url }: ThinkingUpstream, top = ''): Promise<TestGateway> {
  return startTestGateway(t, `${top}upstreams: { up: { url: "${url}", speaks: [messages] } }\nroutes: [{ to: up }]\n`)
}
