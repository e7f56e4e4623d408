import t from 'tap'
import type { Test } from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

/** Errors with status 200 that vendors send in other members than `error`. */
const ERRORS: readonly (readonly [string, object])[] = [
  ['minimax without choices', { base_resp: { status_code: 1004, status_msg: 'login fail' } }],
  ['minimax with choices: null', {
    id: '', choices: null, usage: { total_tokens: 0 },
    base_resp: { status_code: 1002, status_msg: 'rate limit' },
  }],
  ['openrouter', {
    choices: [{
      index: 0, finish_reason: 'error', message: { role: 'assistant', content: '' },
      error: { code: 502, message: 'Upstream idle timeout exceeded' },
    }],
  }],
]

const ANSWERS: readonly (readonly [string, object])[] = [
  ['minimax', { choices: [{ message: { content: 'yes' } }], base_resp: { status_code: 0, status_msg: '' } }],
  ['openrouter', { choices: [{ message: { content: 'yes' }, error: null }] }],
  ['a vendor with other members', { choices: [null, { error: 1 }], base_resp: 'x' }],
]

for (const [whose, body] of ERRORS) {
  t.test(`after an error of ${whose} with status 200, the next target responds`, async t => {
    const { gateway, asked } = await start(t, body, '[a, b]')
    const { status, headers } = await ask(gateway.url)
    t.equal(status, 200)
    t.equal(headers.get('x-gateway-upstream'), 'b')
    t.strictSame(asked, ['/a/v1/chat/completions', '/b/v1/chat/completions'])
  })

  t.test(`without another target, the client gets an error of ${whose} with status 200 at no cost`, async t => {
    const { gateway } = await start(t, body, 'a')
    t.strictSame(JSON.parse((await ask(gateway.url)).text), body)
    const line = await gateway.waitForLog(each => each['msg'] === 'exchange')
    t.match(line, { status: 200, end: 'error', upstream: 'a' })
    t.notOk('input_tokens' in line || 'output_tokens' in line, 'nothing was generated')
  })
}

for (const [whose, body] of ANSWERS) {
  t.test(`a successful response of ${whose} does not count as an error`, async t => {
    const { gateway } = await start(t, body, '[a, b]')
    t.equal((await ask(gateway.url)).headers.get('x-gateway-upstream'), 'a')
    t.match(await gateway.waitForLog(each => each['msg'] === 'exchange'), { end: 'complete' })
  })
}

async function start(t: Test, body: object, to: string) {
  const asked: string[] = []
  const upstream = await startUpstream(t, (req, res) => {
    asked.push(req.url as string)
    const isFirst = req.url?.startsWith('/a/')
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(isFirst ? body : { choices: [{ message: { content: 'Hello' } }] }))
    })
  })
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${upstream.url}/a" }, b: { url: "${upstream.url}/b" } }
routes: [{ to: ${to} }]
`)
  return { gateway, asked }
}

async function ask(url: string) {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
