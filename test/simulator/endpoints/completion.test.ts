import t from 'tap'
import { gather, parseEvents, start } from '../start.ts'

t.test('a completion continues its prompt', async t => {
  const { post } = await start(t)
  const whole = await post('/v1/completions', {
    model: 'sim,tokens=4',
    prompt: ['12345678', 'w1 w2'],
    max_tokens: 9,
  })
  t.match(await whole.json(), {
    id: /^cmpl-/,
    object: 'text_completion',
    choices: [
      { index: 0, text: ' w1 w2 w3 w4', finish_reason: 'stop' },
      { index: 1, text: ' w3 w4' },
    ],
    usage: { prompt_tokens: 4, completion_tokens: 6 },
  })
  const body = {
    model: 'sim',
    prompt: 'x',
    max_tokens: 2,
    stream: true,
    stream_options: { include_usage: true },
  }
  const text = await (await post('/v1/completions', body)).text()
  const events = parseEvents(text)
  t.equal(gather(events, 'choices', 0, 'text'), ' w1 w2')
  t.match(events.at(-3)?.data, { choices: [{ finish_reason: 'length' }] })
  t.match(events.at(-2)?.data, { choices: { length: 0 }, usage: { completion_tokens: 2 } })
  t.equal(events.at(-1)?.data, '[DONE]')
})
