import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { openBooks } from './books.ts'

t.test('the duration of a request does not include the counting of its tokens', async t => {
  const books = await openBooks(t, 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]')
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'sim,cut_after=3', stream: true, messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
  await answer.text().catch(() => '')
  const line = await books.gateway.waitForLog(({ msg }) => msg === 'exchange')
  const [row] = (await books.close()).values()
  t.equal(row?.source, 'estimated')
  t.ok(
    Math.abs((row?.durationMs ?? NaN) - Number(line['ms'])) <= 0.1,
    `${row?.durationMs} and ${String(line['ms'])}`,
  )
})
