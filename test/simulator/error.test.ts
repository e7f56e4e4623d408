import t from 'tap'
import { CHAT, CHAT_PATH, rawUntil, start, wholeRequest } from './start.ts'

t.test('status sends an error in the shape of the protocol and the configured retry headers', async t => {
  const { post } = await start(t, { now: () => Date.UTC(2026, 0, 1) })
  const ask = (list: string) => post(CHAT_PATH, { model: `sim,${list}`, ...CHAT, stream: true })
  const limited = await ask('status=429,retry_after=2')
  t.equal(limited.status, 429)
  t.equal(limited.headers.get('retry-after'), '2')
  t.equal(limited.headers.get('content-type'), 'application/json')
  t.match(await limited.json(), {
    error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null },
  })
  t.equal((await ask('status=503,retry_after_ms=250')).headers.get('retry-after-ms'), '250')
  const dated = await ask('status=503,retry_after_date=60')
  t.equal(dated.headers.get('retry-after'), 'Thu, 01 Jan 2026 00:01:00 GMT')
  const types = {
    400: 'invalid_request_error',
    402: 'insufficient_quota',
    403: 'permission_error',
    404: 'invalid_request_error',
    500: 'server_error',
  }
  for (const [status, type] of Object.entries(types)) {
    t.match(await (await ask(`status=${status}`)).json(), { error: { type } })
  }
})

t.test('a status without content has no body', async t => {
  const { port } = await start(t)
  const socket = await rawUntil(port, wholeRequest('status=204'), text => text.endsWith('\r\n\r\n'))
  socket.destroy()
})

t.test('error_200 sends a JSON error with status 200', async t => {
  const { post } = await start(t)
  const res = await post(CHAT_PATH, { model: 'sim,error_200', ...CHAT, stream: true })
  t.equal(res.status, 200)
  t.match(await res.json(), { error: { type: 'server_error' } })
})
