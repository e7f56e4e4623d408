import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { JSON_CASES } from '../../support/json-cases.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const received: Buffer[] = []
const upstream = await startUpstream(t, async (req, res) => {
  received.push(await bodyOf(req))
  res.setHeader('content-type', 'application/json').end('{}')
})
const gateway = await startTestGateway(t, `upstreams: { up: { url: "${upstream.url}" } }\nroutes: [{ to: up }]\n`)

const DEEP = 100_000
const CASES: readonly (string | Buffer)[] = [
  ...JSON_CASES,
  '['.repeat(DEEP), `${'['.repeat(DEEP)}${']'.repeat(DEEP)}`, '{"a":'.repeat(DEEP), `"${'\\u0041'.repeat(DEEP)}"`, '9'.repeat(DEEP),
  Buffer.from('22ff22', 'hex'), Buffer.from('22c0af22', 'hex'), Buffer.from('22eda08022', 'hex'), Buffer.from('fffe7b007d00', 'hex'),
]

/** The gateway refuses JSON that is nested deeper than this. */
function isTooDeep(text: string): boolean {
  return text.startsWith('['.repeat(1_000))
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}

async function post(body: Buffer): Promise<{ status: number, text: string }> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  return { status: response.status, text: await response.text() }
}

for (const [what, body, message] of [
  ['a byte order mark', Buffer.from('\ufeff{"model":"m"}'), /begins with a byte order mark; send it without one/],
  ['UTF-16 text', Buffer.from('\ufeff{"model":"m"}', 'utf16le'), /is in UTF-16; send it in UTF-8/],
  ['UTF-16 text without a byte order mark', Buffer.from('{"model":"m"}', 'utf16le'), /is in UTF-16; send it in UTF-8/],
] as const) {
  t.test(`a body with ${what} gets 400, and the error says how to send the body`, async t => {
    const { status, text } = await post(body)
    t.equal(status, 400)
    t.match(text, message)
  })
}

t.test('a body is forwarded byte for byte if it is JSON in UTF-8, and gets 400 invalid_json otherwise', async t => {
  for (const value of CASES) {
    const bytes = Buffer.concat([Buffer.from('{"model":"m","x":'), Buffer.from(value), Buffer.from('}')])
    const name = String(value).replace(/[^ -~]/g, '·').slice(0, 60)
    received.length = 0
    const { status, text } = await post(bytes)
    if (isJson(bytes) && !isTooDeep(String(value))) {
      t.equal(status, 200, name)
      t.ok(received[0]?.equals(bytes), name)
    } else {
      t.equal(status, 400, name)
      t.match(text, /"code":"invalid_json"/, name)
      t.equal(received.length, 0, name)
    }
  }
})

t.test('an invalid body without a model gets 400, and nothing goes upstream', async t => {
  for (const value of JSON_CASES) {
    received.length = 0
    const { status } = await post(Buffer.from(value))
    t.equal(status, 400, value.replace(/[^ -~]/g, '·').slice(0, 60))
    t.equal(received.length, 0)
  }
  t.equal((await fetch(`${gateway.url}/api/status`)).status, 200)
})
