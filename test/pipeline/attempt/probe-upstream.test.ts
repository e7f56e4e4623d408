import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { Upstream } from '../../../src/config/types.ts'
import { probeUpstream } from '../../../src/pipeline/attempt/probe-upstream.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { startTokenServer } from '../../support/token-server.ts'
import { startUpstream } from '../../support/upstream.ts'

const DEADLINE = 15_000

function open(t: Test, yaml: string) {
  const file = join(t.testdir({}), 'gateway.yaml')
  writeFileSync(file, `upstreams: { up: ${yaml} }\nroutes: [{ to: up }]\nauth: open\n`)
  const clock = new FakeClock()
  const { config } = loadConfig(file, {})
  return { clock, result: probeUpstream(config, config.upstreams.get('up') as Upstream, null, clock) }
}

t.test('a probe of a silent upstream fails after 15 s', async t => {
  const { url, server } = await startUpstream(t, () => {})
  const { clock, result } = open(t, `{ url: "${url}" }`)
  await once(server, 'request')
  clock.advance(DEADLINE)
  t.strictSame(await result, { verdict: 'failed', ms: DEADLINE, detail: 'no response within 15 s' })
})

t.test('a probe whose response stops fails after 15 s', async t => {
  const { url, server } = await startUpstream(t, (_req, res) => {
    res.writeHead(200).write('{')
  })
  const { clock, result } = open(t, `{ url: "${url}" }`)
  const [, res] = await once(server, 'request') as [unknown, NodeJS.WritableStream]
  t.ok(res.writable)
  clock.advance(DEADLINE)
  t.match(await result, { verdict: 'failed', detail: 'no response within 15 s' })
})

t.test('a probe with a silent token server fails', async t => {
  const fetching = Promise.withResolvers<unknown>()
  const tokens = await startTokenServer(t)
  tokens.fault = fetching.resolve
  const { clock, result } = open(t, `{ url: "http://127.0.0.1:1", auth: { oauth2: { token_url: "${tokens.url}", client_id: a, client_secret: b } } }`)
  await fetching.promise
  clock.advance(DEADLINE)
  t.match(await result, { verdict: 'failed', detail: /^credentials: the source of the credential did not respond within 10 s|^no response within 15 s/ })
})
