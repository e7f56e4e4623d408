import t from 'tap'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { openSessionOn } from '../../support/http2.ts'
import { connect } from '../../support/wire.ts'

const CONFIG = (server: string) => `
server: { listen: 127.0.0.1:0${server} }
console: { listen: 127.0.0.1:0 }
upstreams: { demo: { simulator: true } }
routes: [{ model: [demo], to: demo }]
`
const GET = `GET /api/status HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${KEY}\r\n\r\n`

t.test('the keep-alive timeout of a connection is 620 s by default, or server.idle', async t => {
  for (const [server, timeout] of [['', '620'], [', idle: 15m', '900'], [', idle: 1s', '1']] as const) {
    const { addresses: { base, console: managed } } = await startTestGateway(t, CONFIG(server))
    for (const url of [base, managed as string]) {
      const client = await connect(t, url)
      client.send(GET)
      t.match(await client.until(/\}$/), new RegExp(`\r\nkeep-alive: timeout=${timeout}\r\n`, 'i'), `${server} ${url}`)
      if (timeout === '1') await client.ended
    }
  }
})

t.test('idle HTTP/2 sessions end after server.idle', async t => {
  const { url } = await startTestGateway(t, CONFIG(', idle: 100ms'))
  const { session } = await openSessionOn(t, url)
  const request = session.request({ ':path': '/api/status', 'authorization': `Bearer ${KEY}` })
  request.resume()
  await new Promise(resolve => session.once('close', resolve))
  t.ok(request.closed)
})
