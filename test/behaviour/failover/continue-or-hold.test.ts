import t from 'tap'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { WORDS, ask, everyWay } from './asking.ts'

function configuration(url: string, first: string, second: string): string {
  return `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes: [{ to: [{ upstream: a, model: "${first}" }, { upstream: b, ${second} }], resume: continue_or_hold }]`
}

everyWay(t, 'a stream is continued if the next target can continue streams', async (t, dialect) => {
  const { url } = await start(t)
  const gateway = await startTestGateway(t, configuration(url, 'sim,close_after=8', 'model: sim, prefill: true'))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.equal(answer.headers.get('x-gateway-upstream'), 'a', 'the response begins with the first target')
}, [true])

everyWay(t, 'a stream is held if no target can continue streams', async (t, dialect) => {
  const { url, simulator } = await start(t)
  const gateway = await startTestGateway(t, configuration(url, 'sim,close_after=8', 'model: sim'))
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, text: WORDS, whole: true })
  t.equal(answer.headers.get('x-gateway-upstream'), 'b', 'the client gets nothing of the first target')
  t.equal(simulator.stats.requests, 2)
}, [true])

for (const [what, path, body, text] of [
  ['a stream of responses', '/v1/responses', { input: 'Hello' }, /response\.completed/],
  ['structured output', '/v1/chat/completions', {
    messages: [{ role: 'user', content: 'Hello' }], response_format: { type: 'json_object' },
  }, /\[DONE\]/],
] as const) {
  t.test(`${what} is held, even if the next target accepts a prefill`, async t => {
    const { url } = await start(t)
    const gateway = await startTestGateway(t, configuration(url, 'sim,close_after=8', 'model: sim, prefill: true'))
    const response = await fetch(gateway.addresses.base + path, {
      method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', stream: true, ...body }),
    })
    t.match(await response.text(), text)
    t.equal(response.headers.get('x-gateway-upstream'), 'b')
  })
}
