import t from 'tap'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { openBooks } from '../books.ts'

const PICO = 1_000_000_000_000n

function recording(bytes: number): FormData {
  const form = new FormData()
  form.set('model', 'ears')
  form.set('file', new Blob(['x'.repeat(bytes)]), 'a.mp3')
  return form
}

function painting(n: number): FormData {
  const form = new FormData()
  form.set('model', 'brush')
  form.set('image', new Blob(['a cat']), 'a.png')
  form.set('n', String(n))
  return form
}

const ITEMS = [
  {
    what: 'image', model: 'brush', price: 'per_image: 1', path: 'images/generations', type: 'application/json',
    answer: '{"data":[{"b64_json":"x"},{"b64_json":"x"}]}', body: { model: 'brush', prompt: 'a cat', n: 2 },
    cost: 2n * PICO, more: { model: 'brush', prompt: 'a cat', n: 2 },
  },
  {
    what: 'image, for a request as a form', model: 'brush', price: 'per_image: 1', path: 'images/edits',
    type: 'application/json', answer: '{"data":[{"b64_json":"x"},{"b64_json":"x"}]}', body: painting(2),
    cost: 2n * PICO, more: painting(2),
  },
  {
    what: 'character', model: 'voice', price: 'per_character: 0.5', path: 'audio/speech', type: 'audio/mpeg',
    answer: 'sound', body: { model: 'voice', input: 'four' }, cost: 2n * PICO,
    more: { model: 'voice', input: 'five!' },
  },
  {
    what: 'second', model: 'ears', price: 'per_second: 0.25', path: 'audio/transcriptions', type: 'application/json',
    answer: '{"text":"hello","usage":{"type":"duration","seconds":8}}', body: recording(10), cost: 2n * PICO,
    more: recording(20_000),
  },
] as const

for (const { what, model, price, path, type, answer, body, cost, more } of ITEMS) {
  t.test(`a budget is not exceeded with a price per ${what}`, async t => {
    const upstream = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => res.writeHead(200, { 'content-type': type }).end(answer))
    })
    const books = await openBooks(t, `
upstreams: { up: { url: "${upstream.url}" } }
routes: [{ to: up }]
limits: { budget: { usd: 3, per: total } }
models: { ${model}: { price: { ${price} } } }`)
    const ask = async (sent: object): Promise<number> => {
      const isForm = sent instanceof FormData
      const answer = await fetch(`${books.gateway.url}/v1/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, ...!isForm && { 'content-type': 'application/json' } },
        body: isForm ? sent : JSON.stringify(sent),
      })
      await answer.text()
      return answer.status
    }
    t.equal(await ask(body), 200)
    await books.gateway.waitForLog(line => line.msg === 'exchange')
    t.equal(await ask(more), 429, 'more than is left')
    const [row] = [...(await books.close()).values()]
    t.equal(row?.costPico, cost)
  })
}
