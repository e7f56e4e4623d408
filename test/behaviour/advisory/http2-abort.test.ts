import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { openSession, postH2 } from '../../support/http2.ts'
import { startUpstream } from '../../support/upstream.ts'
import { proxyTo } from '../../support/wire.ts'

/** More bytes than the window of a stream, which a client that does not read never extends. */
const MUCH = Buffer.alloc(100_000, 'x')

t.test('nodejs/node#41458: a response that breaks while earlier bytes ' +
  'wait for the client does not end the process', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    req.resume()
    // Fewer bytes than the Content-Length arrive, so the gateway cannot add an error to the response.
    res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': 200_000 })
    res.write(MUCH, () => setTimeout(Math.random() * 20).then(() => res.destroy()))
  })
  const gateway = await startTestGateway(t, proxyTo(upstream.url))
  for (let round = 0; round < 20; round++) {
    const session = await openSession(t, gateway.url)
    await Promise.all(Array.from({ length: 20 }, async () => {
      const request = postH2(session, '/v1/audio/speech', { model: 'm', input: 'x' })
      request.stream.pause()
      await setTimeout(Math.random() * 60)
      request.stream.resume()
      t.not(await request.closed, 0)
    }))
    session.destroy()
  }
  t.equal((await fetch(`${gateway.url}/api/status`)).status, 200)
})
