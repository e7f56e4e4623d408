import type * as http from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { start } from '../../simulator/start.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { ask, everyWay } from './asking.ts'
import type { Dialect } from './asking.ts'

/** A text that is longer than the gateway holds. */
const LARGE = 'y'.repeat(17 * 1024 * 1024)

function event(value: { readonly type?: string }): string {
  return `${value.type === undefined ? '' : `event: ${value.type}\n`}data: ${JSON.stringify(value)}\n\n`
}

/** @returns the events of a stream with this text */
function streamOf({ name }: Dialect, text: string): string[] {
  const index = 0
  switch (name) {
    case 'chat':
      return [
        event({ id: 'z', choices: [{ index, delta: { role: 'assistant', content: '' } }] } as object),
        event({ id: 'z', choices: [{ index, delta: { content: text } }] } as object),
        event({ id: 'z', choices: [{ index, delta: {}, finish_reason: 'stop' }] } as object),
        'data: [DONE]\n\n',
      ]
    case 'messages':
      return [
        {
          type: 'message_start',
          message: { id: 'z', role: 'assistant', content: [], usage: { input_tokens: 1 } },
        },
        { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ].map(event)
    case 'generate':
      return [
        event({ candidates: [{ content: { parts: [{ text }] } }] } as object),
        event({ candidates: [{ content: { parts: [{ text: '' }] }, finishReason: 'STOP' }] } as object),
      ]
  }
}

/** An upstream with one event that is larger than the gateway holds. */
async function startLarge(t: Test, dialect: Dialect): Promise<{ url: string; body: string }> {
  const parts = streamOf(dialect, LARGE)
  const play = async (res: http.ServerResponse): Promise<void> => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const part of parts) await new Promise(resolve => res.write(part, resolve))
    res.end()
  }
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    void play(res)
  })
  return { url, body: parts.join('') }
}

everyWay(t, 'an event that is too large to be buffered is forwarded if the stream is not a continuation', async (t, dialect) => {
  const { url, body } = await startLarge(t, dialect)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "http://127.0.0.1:9" } }
routes: [{ to: [a, { upstream: b, prefill: true }], resume: continue }]
`)
  const answer = await ask(gateway, dialect, { stream: true })
  t.ok(answer.whole)
  t.ok(answer.body === body, 'byte for byte')
}, [true])

everyWay(t, 'if the target that continues a stream sends too large an event, the client gets an error event', async (t, dialect) => {
  const { url } = await start(t)
  const large = await startLarge(t, dialect)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${large.url}" } }
routes:
  - to: [{ upstream: a, model: "sim,close_after=4" }, { upstream: b, prefill: true }]
    resume: continue
`)
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, whole: false })
  t.notOk(dialect.isWhole(answer.body))
  t.ok(dialect.tellsError(answer.body), 'the error has the shape of the protocol')
  t.match(answer.body, /too long/)
  const line = await gateway.waitForLog(({ msg }) => msg === 'exchange')
  t.match(line, { error: 'upstream_invalid', attempts: 2 })
}, [true])

everyWay(t, 'if the target that continues a stream sends too large an event, a further target continues the stream', async (t, dialect) => {
  const { url } = await start(t)
  const large = await startLarge(t, dialect)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${large.url}" }, c: { url: "${url}" } }
routes:
  - to:
      - { upstream: a, model: "sim,close_after=4" }
      - { upstream: b, prefill: true }
      - { upstream: c, model: sim, prefill: true }
    resume: continue
`)
  const answer = await ask(gateway, dialect, { stream: true })
  t.match(answer, { status: 200, whole: true })
  t.ok(dialect.isWhole(answer.body))
  t.notMatch(answer.body, /yyyy/)
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { end: 'complete', attempts: 3 })
}, [true])

everyWay(t, 'a stream that breaks inside a large event is not continued, and gets no error event', async (t, dialect) => {
  const whole = streamOf(dialect, LARGE).join('')
  const { url } = await startUpstream(t, (req, res) => {
    req.resume()
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(whole.slice(0, whole.lastIndexOf('yyyy')), () => res.socket?.destroySoon())
  })
  const spare = await start(t)
  const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${spare.url}" } }
routes: [{ to: [a, { upstream: b, model: sim, prefill: true }], resume: continue }]
`)
  const answer = await ask(gateway, { ...dialect, streamed: body => body }, { stream: true })
  t.equal(answer.whole, false)
  t.ok(answer.body.endsWith('yyyy'), answer.body.slice(-200))
  t.equal(spare.simulator.stats.requests, 0)
}, [true])
