import { readdirSync } from 'node:fs'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { connect, post } from '../../support/wire.ts'

const CLIENTS = 200

t.test('without free file descriptors, some clients are served and the other clients get an error', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async t => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.setHeader('content-type', 'text/event-stream').write('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
    void released.then(() => res.end('data: [DONE]\n\n'))
  })
  const dir = t.testdir({
    'gateway.yaml': `
server: { listen: 127.0.0.1:0 }
upstreams: { up: { url: "${upstream.url}", usage: as_is } }
routes: [{ to: up }]
keys: [{ name: test, key: ${KEY} }]
ledger: { file: gateway.db }
`,
  })
  const gateway = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`], { descriptors: 64 })
  t.ok(readdirSync(`/proc/${gateway.child.pid}/fd`).length < 48, 'at rest')
  const ask = async () => {
    const client = await connect(t, gateway.base)
    client.send(post('/v1/chat/completions', { model: 'gpt-4o', stream: true, messages: [] }, ['Connection: close']))
    await client.ended
    return client.text
  }
  let refused = 0
  const answers = Array.from({ length: CLIENTS }, async () => {
    const text = await ask()
    if (!text.includes(' 200 ') && ++refused === CLIENTS / 2) release()
    return text
  })
  const kinds = new Map<string, number>()
  for (const text of await Promise.all(answers)) {
    // When even the last descriptors are in use, a connection is closed without a response.
    const kind = text === '' ? 'closed' : `${/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]} ${/\[DONE\]|"code":"\w+"/.exec(text)?.[0]}`
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  kinds.delete('closed')
  t.strictSame([...kinds.keys()].sort(), ['200 [DONE]', '503 "code":"overloaded"'], JSON.stringify([...kinds]))
  t.match(await ask(), /^HTTP\/1\.1 200 [^]*\[DONE\]/, 'the gateway still serves')
})
