import t from 'tap'
import { start } from './start.ts'

t.test('an unknown path or method gets an error in the shape of the protocol', async t => {
  const { url, post } = await start(t)
  t.match(await (await fetch(`${url}/`)).json(), { error: { type: 'invalid_request_error' } })
  t.equal((await fetch(`${url}/api/hello`, { method: 'HEAD' })).status, 404)
  const wrong = await fetch(`${url}/v1/messages`)
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'POST')
  t.match(await wrong.json(), { type: 'error', error: { type: 'invalid_request_error' } })
  t.equal((await post('/v1/models', {})).status, 405)
  t.match(await (await post('/v1beta/models/sim:generateContent', '{')).json(), {
    error: { code: 400, status: 'INVALID_ARGUMENT' },
  })
})
