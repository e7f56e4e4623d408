import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { filesFor, priced, rowsIn } from '../books.ts'

/*
 * Usage that is unknown after a request is cut is also unknown after a kill, because
 * the ledger would show an estimate of the known part as the cost.
 */

function event(data: { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

const EVENTS = 'text/event-stream'
const TEXT = { type: 'response.output_text.delta', output_index: 0, delta: 'hello there' }
const PICTURE = JSON.stringify({ choices: [{ index: 0, delta: { images: [{ image_url: { url: 'data:x' } }] } }] })
const SAID = 'data: {"choices":[{"index":0,"delta":{"content":"hello there"}}]}\n\n'
const CHAT = { path: '/v1/chat/completions', body: { model: 'm', stream: true, messages: [] }, type: EVENTS }

interface Play {
  readonly path: string
  readonly body: object
  readonly type: string
  /** The sent part of the response; absent = not even the head is sent. */
  readonly said?: string | Buffer
}

const PLAYS: Readonly<Record<string, Play>> = {
  'a streamed image': {
    path: '/v1/images/generations', body: { model: 'm', prompt: 'a cat', stream: true }, type: EVENTS,
    said: event({ type: 'image_generation.partial_image', b64_json: 'AAAA' } as { type: string }),
  },
  'an image in a JSON body': {
    path: '/v1/images/generations', body: { model: 'm', prompt: 'a cat' }, type: 'application/json',
    said: '{"data":[{"b64_json":"AAAA',
  },
  'a transcript': {
    path: '/v1/audio/transcriptions', body: { model: 'm', stream: 'true' }, type: EVENTS,
    said: event({ type: 'transcript.text.delta', delta: 'hello there' } as { type: string }),
  },
  'a stream of a background response': {
    path: '/v1/responses', body: { model: 'm', input: 'hi', stream: true, background: true }, type: EVENTS,
    said: event(TEXT),
  },
  'a background response without a head': {
    path: '/v1/responses', body: { model: 'm', input: 'hello', background: true }, type: 'application/json',
  },
  'an image in a chat': { ...CHAT, said: `data: ${PICTURE}\n\n` },
  'speech paid by tokens': {
    path: '/v1/audio/speech', body: { model: 'm', input: 'hello' }, type: 'audio/mpeg', said: 'sound',
  },
  'speech': {
    path: '/v1/audio/speech', body: { model: 'voice', input: 'four' }, type: 'audio/mpeg', said: 'sound',
  },
  'a stream that is forwarded unread': { ...CHAT, said: gzipSync(SAID) },
}

function bodyFor({ path, body }: Play): FormData | string {
  if (!path.endsWith('transcriptions')) return JSON.stringify(body)
  const form = new FormData()
  for (const [name, value] of Object.entries(body)) form.set(name, String(value))
  form.set('file', new Blob(['sound']), 'a.mp3')
  return form
}

/** The statuses of the running requests in the ledger. */
function statusesIn(file: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
  return db.prepare('SELECT status FROM in_flight').all().map(({ status }) => status)
}

t.test('after kill -9, the cost of a response that cannot be counted is null', async t => {
  const plays = Object.entries(PLAYS)
  const asked = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      const { said, type } = PLAYS[String(req.headers['x-play']).replaceAll('-', ' ')] as Play
      if (said === undefined) return asked.resolve()
      const coding = typeof said === 'string' ? {} : { 'content-encoding': 'gzip' }
      res.writeHead(200, { 'content-type': type, ...coding }).write(said)
    })
  })
  const voice = '  voice: { price: { per_character: 0.5 } }\n'
  const cwd = t.testdir(filesFor(upstream.url, priced('m') + voice))
  const { base, child, ended } = await listening(t, ['serve'], { cwd })
  const running = plays.map(([what, play]) => {
    const body = bodyFor(play)
    const json = typeof body === 'string' && { 'content-type': 'application/json' }
    return t.rejects(fetch(base + play.path, {
      method: 'POST', body,
      headers: { 'authorization': `Bearer ${KEY}`, 'x-play': what.replaceAll(' ', '-'), ...json },
    }).then(answer => answer.arrayBuffer()))
  })
  await asked.promise
  const file = join(cwd, 'ledger.db')
  const areThere = (drafts: unknown[]): boolean =>
    drafts.length === plays.length && drafts.filter(status => status === 200).length === plays.length - 1
  while (!areThere(statusesIn(file))) await setImmediate()
  child.kill('SIGKILL')
  await Promise.all([...running, ended])
  const rows = [...rowsIn(t, file).values()]
  t.equal(rows.length, plays.length)
  const spoken = rows.find(({ model }) => model === 'voice')
  t.match(spoken, { usage: { characters: 4 }, costPico: 2_000_000_000_000n }, 'the price per character is known from the request')
  for (const row of rows) {
    if (row === spoken) continue
    t.match(row, { end: 'interrupted', costPico: null }, `${row.endpoint} ${row.status}`)
    if (row.endpoint !== 'audio.transcriptions') t.match(row.usage, { outputTokens: null })
  }
})
