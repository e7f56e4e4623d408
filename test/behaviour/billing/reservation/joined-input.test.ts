import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks, priced } from '../books.ts'

const PIECE = 'data: {"id":"x","choices":[{"index":0,"delta":{"content":" hello"}}]}\n\n'
const FINISH = 'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

t.test('without reported usage, the text of broken attempts counts as input of the attempt that continues the stream', async t => {
  let asked = 0
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      if (++asked === 3) res.end(PIECE + FINISH)
      else res.write(PIECE.repeat(100), () => setImmediate(() => res.destroy()))
    })
  })
  const target = (model: string) => `{ upstream: up, model: ${model}, prefill: true }`
  const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}", usage: as_is } }
routes: [{ to: [${['a', 'b', 'c'].map(target).join()}], resume: continue }]
${priced('a', 'b', 'c')}`)
  const answer = await fetch(`${books.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
  })
  t.match(await answer.text(), /\[DONE\]/)
  const [row] = [...(await books.drain()).values()]
  const [first, second, third] = row?.attempts ?? []
  t.match(first, { inputTokens: 8, outputTokens: 100 })
  // The input has one more message with these tokens.
  t.match(second, { inputTokens: 8 + 4 + 100, outputTokens: 100 })
  t.match(third, { inputTokens: 8 + 4 + 200, outputTokens: 1 })
  t.match(row?.usage, { inputTokens: 332, outputTokens: 201 })
})
