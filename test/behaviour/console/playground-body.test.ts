import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { PASSWORD, startConsole } from './console.ts'

t.test('the playground responds to Expect: 100-continue before the body arrives', async t => {
  const gateway = await startConsole(t)
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const req = request(`${gateway.console}/console/api/playground/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'expect': '100-continue', 'content-type': 'application/json',
      'cookie': admin.cookie ?? '', 'x-csrf-token': admin.csrf ?? '',
    },
  })
  const body = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] })
  req.once('continue', () => req.end(body))
  req.flushHeaders()
  const [res] = await once(req, 'response') as [IncomingMessage]
  res.resume()
  t.equal(res.statusCode, 200)
})
