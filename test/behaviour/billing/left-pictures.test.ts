import t from 'tap'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { connect, post } from '../../support/wire.ts'
import { openBooks } from './books.ts'

/** More bytes than the buffers of a connection hold. */
const PICTURE = 'A'.repeat(12_000_000)

t.test('a client that disconnects while it downloads images pays for all images', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ data: [{ b64_json: PICTURE }, { b64_json: PICTURE }] }))
    })
  })
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up, resume: hold }]
models: { m: { price: { per_image: 1 } } }`)
  const client = await connect(t, books.gateway.url)
  client.send(post('/v1/images/generations', { model: 'm', prompt: 'a red apple', n: 2 }))
  await client.until(/b64_json/)
  client.socket.destroy()
  await books.gateway.waitForLog(line => line.msg === 'exchange')
  const [row] = [...(await books.drain()).values()]
  t.match(row, { end: 'client_gone', usage: { images: 2 }, costPico: 2n * 10n ** 12n })
})
