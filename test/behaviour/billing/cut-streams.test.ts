import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import t from 'tap'
import type { Test } from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { chat, generate, messages, responses } from '../../pricing/recordings.ts'
import type { Recording } from '../../pricing/recordings.ts'
import { STREAM_HEAD, chunk, connect, post, startWireUpstream } from '../../support/wire.ts'
import { costOf, openBooks, priced, usedIn } from './books.ts'

/*
 * A recorded stream of each protocol, cut after each of its events by the
 * upstream and by the client. The expected bill is computed from the
 * recording only.
 */

const PROMPT = 'Why is the sky blue, and the sunset red?'
// The tokens of the prompt, 4 for its message, and 3 for the start of the response.
const PROMPT_TOKENS = countTokens(PROMPT) + 4 + 3

interface Bill {
  readonly source: LedgerRow['source']
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly write?: number
  readonly reasoning?: number
}

interface Case {
  readonly recording: Recording
  readonly path: string
  readonly body: Record<string, unknown>
  /** The usage that the first `events` events report; null = none. */
  reported(events: number): Partial<Bill> | null
  /** Number of the last event of the stream. */
  readonly last: number
}

const plain = { model: 'm', stream: true, messages: [{ role: 'user', content: PROMPT }] }

function where(recording: Recording, pattern: RegExp): number {
  return recording.events.findIndex(event => pattern.test(event)) + 1
}

const CHAT_USAGE = where(chat, /"prompt_tokens":31/)
const MESSAGE_DELTA = where(messages, /^event: message_delta/)
const FIRST_COUNTED = where(generate, /candidatesTokenCount/)

const CASES: readonly Case[] = [
  {
    recording: chat,
    path: '/v1/chat/completions',
    body: { ...plain, stream_options: { include_usage: true } },
    last: chat.events.length,
    reported: n => (n < CHAT_USAGE ? null : { input: 31, cached: 16, output: 250, reasoning: 40 }),
  },
  {
    recording: responses,
    path: '/v1/responses',
    body: { model: 'm', stream: true, input: [{ role: 'user', content: PROMPT }] },
    last: responses.events.length,
    reported: n => {
      return n < responses.events.length ? null : { input: 37, cached: 0, output: 211, reasoning: 64 }
    },
  },
  {
    recording: messages,
    path: '/v1/messages',
    body: { ...plain, max_tokens: 1000 },
    last: messages.events.length,
    reported: n => {
      if (n === 0) return null
      if (n < MESSAGE_DELTA) return { input: 2125, cached: 2000, write: 100 }
      return { input: 2126, cached: 2001, write: 100, output: 333 }
    },
  },
  {
    recording: generate,
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: PROMPT }] }] },
    last: generate.events.length,
    reported: n => {
      if (n === 0) return null
      if (n < FIRST_COUNTED) return { input: 12 }
      const count = n - FIRST_COUNTED
      const end = generate.events.length - FIRST_COUNTED
      const candidates = count === end ? 96 : count === end - 1 ? 95 : 5 * (count + 1)
      return { input: count === end ? 11 : 12, output: candidates + 20, reasoning: 20 }
    },
  },
]

function yaml(url: string): string {
  return `upstreams: { up: { url: "${url}" } }\nroutes: [{ to: up }]\n${priced('m')}`
}

/** The tokens of the first `events` events; the response and the arguments of a call are separate texts. */
function counted({ texts }: Recording, events: number): { tokens: number; reasoning: number } {
  const seen = texts.slice(0, events)
  const [content, reasoning, tool] = [0, 1, 2].map(kind => {
    return countTokens(seen.map(each => each[kind] ?? '').join(''), { disallowedSpecial: new Set() })
  }) as [number, number, number]
  return { tokens: content + reasoning + tool, reasoning }
}

/** The expected bill; null = nothing is billed. */
function expected({ recording, reported }: Case, events: number, clientLeft: boolean): Bill | null {
  const told = reported(events)
  const { tokens, reasoning } = counted(recording, events)
  const called = /content_block_start[^]*tool_use|"tool_calls"/.test(
    recording.events.slice(0, events).join(''),
  )
  const generated = tokens > 0 || called
  if (!generated && !clientLeft) return null
  const output = told?.output ?? tokens
  const reasoned = told?.output === undefined ? reasoning : (told.reasoning ?? 0)
  const input = told?.input ?? PROMPT_TOKENS
  const bill = { cached: 0, write: 0, ...told, input, output, reasoning: reasoned }
  if (told?.output !== undefined) return { ...bill, source: 'reported' }
  if (told) return { ...bill, source: generated ? 'mixed' : 'reported' }
  return { ...bill, source: 'estimated' }
}

function check(
  t: Test, row: LedgerRow | undefined, bill: Bill | null, end: LedgerRow['end'], name: string,
): void {
  if (!row) {
    t.fail(`${name}: no row`)
    return
  }
  const { source, ...used } = bill ?? { source: 'none', input: 0, output: 0 }
  const found = { end: row.end, source: row.source, ...usedIn(row), cost: row.costPico }
  t.strictSame(
    found,
    { end, source, cached: 0, write: 0, writeHour: 0, reasoning: 0, ...used, cost: costOf(used) },
    name,
  )
}

for (const scene of CASES) {
  const { recording, path, body, last } = scene
  const all = recording.events.length

  t.test(`${recording.name}: the events before a cut by the upstream are billed, wherever the cut is`, async t => {
    const upstream = await startWireUpstream(t, async wire => {
      const { head } = await wire.request()
      const events = Number(/\r\nx-events: (\d+)/i.exec(head)?.[1])
      wire.send(STREAM_HEAD + recording.events.slice(0, events).map(event => chunk(toLatin(event))).join(''))
      wire.socket.end()
      await wire.ended
    })
    const books = await openBooks(t, yaml(upstream.url))
    const ids: string[] = []
    for (let events = 0; events <= all; events++) {
      const client = await connect(t, books.gateway.url)
      client.send(post(path, body, [`X-Events: ${events}`, 'Connection: close']))
      await client.ended
      ids.push(/\r\nx-gateway-request-id: ([^\r]+)/i.exec(client.text)?.[1] ?? '')
    }
    const rows = await books.drain()
    t.equal(rows.size, all + 1)
    for (const [events, id] of ids.entries()) {
      // After its last event a stream is complete, whether or not the HTTP body ends.
      const end = events < last ? 'upstream_cut' : 'complete'
      check(t, rows.get(id), expected(scene, events, false), end, `after ${events} of ${all}`)
    }
  })

  t.test(`${recording.name}: the events before the client disconnects are billed, whenever that is`, async t => {
    const upstream = await startWireUpstream(t, async wire => {
      const { head } = await wire.request()
      const events = Number(/\r\nx-events: (\d+)/i.exec(head)?.[1])
      wire.send(STREAM_HEAD + recording.events.slice(0, events).map(event => chunk(toLatin(event))).join(''))
      await wire.ended
    })
    const books = await openBooks(t, yaml(upstream.url))
    const ids: string[] = []
    for (let events = 0; events < last; events++) {
      const client = await connect(t, books.gateway.url)
      client.send(post(path, body, [`X-Events: ${events}`]))
      await client.until(/\r\n\r\n/)
      const bytes = recording.events.slice(0, events).map(toLatin).join('')
      while (!unchunked(client.text).includes(bytes)) {
        await client.until(new RegExp(`^[^]{${client.text.length + 1}}`))
      }
      client.socket.destroy()
      const id = /\r\nx-gateway-request-id: ([^\r]+)/i.exec(client.text)?.[1] ?? ''
      await books.gateway.waitForLog(line => line.msg === 'exchange' && line.request === id)
      ids.push(id)
    }
    const rows = await books.drain()
    t.equal(rows.size, last)
    for (const [events, id] of ids.entries()) {
      check(t, rows.get(id), expected(scene, events, true), 'client_gone', `after ${events} of ${all}`)
    }
  })
}

/** One character for each byte. */
function toLatin(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function unchunked(response: string): string {
  let body = ''
  let rest = response.slice(response.indexOf('\r\n\r\n') + 4)
  for (;;) {
    const head = /^([0-9a-f]+)\r\n/i.exec(rest)
    if (!head) return body
    const from = head[0].length
    const size = Number.parseInt(head[1] ?? '0', 16)
    body += rest.slice(from, from + size)
    rest = rest.slice(from + size + 2)
  }
}
