import t from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { openSession, postH2 } from '../../support/http2.ts'
import { DIALECTS, WORDS } from './asking.ts'

for (const [resume, fault] of [
  ['off', 'status=503'], ['off', 'first_event_error'], ['off', 'reset'],
  ['continue', 'close_after=8'], ['continue', 'error_event_after=8'], ['hold', 'close_after=8'],
] as const) {
  t.test(`over HTTP/2, resume: ${resume}: the client gets a complete response if the first target fails with ${fault}`, async t => {
    const { url } = await start(t)
    const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes:
  - to: [{ upstream: a, model: "sim,${fault}" }, { upstream: b, model: sim, prefill: true }]
    resume: ${resume}
`)
    const session = await openSession(t, gateway.url)
    for (const dialect of DIALECTS) {
      const request = postH2(session, dialect.path('m', true), dialect.body('m', true))
      t.match(await request.head, { ':status': 200 })
      t.equal(await request.closed, 0)
      t.ok(request.ended)
      t.equal(dialect.streamed(request.text), WORDS)
    }
  })
}

t.test('over HTTP/2, if no upstream can continue, the client gets an error event and RST_STREAM', async t => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes:
  - to: [{ upstream: a, model: "sim,close_after=8" }, { upstream: b, model: "sim,status=503", prefill: true }]
    resume: continue
`)
  const session = await openSession(t, gateway.url)
  for (const dialect of DIALECTS) {
    const request = postH2(session, dialect.path('m', true), dialect.body('m', true))
    t.not(await request.closed, 0)
    t.notOk(request.ended)
    t.ok(dialect.tellsError(request.text))
  }
})
