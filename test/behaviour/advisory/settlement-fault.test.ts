import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { compileGlob } from '../../../src/config/glob.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import type { Admission, Limiter } from '../../../src/limits/types.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'

t.test('an internal error during a settlement is logged, and the next request is served', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const faults: unknown[] = []
  const note = (fault: unknown): void => void faults.push(fault)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const gateway = await startTestGateway(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
`, {}, {
    openLimiter: defaults => {
      const limiter: Limiter = createLimiter({ defaults, compileGlob, clock: systemClock })
      return {
        ...limiter,
        admit: ask => {
          const admission = limiter.admit(ask) as Admission
          if (!admission.ok) return admission
          const settle = () => {
            throw new TypeError('cannot be settled')
          }
          return { ok: true, reservation: { ...admission.reservation, settle } }
        },
      }
    },
  })
  for (let n = 0; n < 2; n++) {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: '{"model":"m","messages":[]}',
    })
    t.equal(answer.status, 200)
    t.equal(await answer.text(), '{}')
    const line = await gateway.waitForLog(({ msg, request }) =>
      msg === 'a request could not be settled: its usage or cost may be missing' && request === answer.headers.get('x-gateway-request-id'))
    t.match(line, { err: { message: 'cannot be settled' } })
  }
  t.strictSame(faults, [])
})
