import t from 'tap'
import { gather, parseEvents, start } from '../start.ts'

function form(fields: Record<string, string>): FormData {
  const data = new FormData()
  for (const [key, value] of Object.entries(fields)) data.append(key, value)
  data.append('file', new Blob([new Uint8Array(32_001)]), 'a.mp3')
  return data
}

t.test('a transcription is available in each format', async t => {
  const { url } = await start(t)
  const ask = (fields: Record<string, string>, path = 'transcriptions') =>
    fetch(`${url}/v1/audio/${path}`, { method: 'POST', body: form({ model: 'sim,tokens=2', ...fields }) })

  // 32,001 bytes at 16,000 bytes per second are three seconds, rounded up.
  t.same(await (await ask({ prompt: '1234' })).json(), {
    text: 'w1 w2',
    usage: {
      type: 'tokens',
      input_tokens: 31,
      input_token_details: { text_tokens: 1, audio_tokens: 30 },
      output_tokens: 2,
      total_tokens: 33,
    },
  })
  const whisper = await (await ask({ model: 'whisper-1,tokens=2' })).json()
  t.same(whisper, { text: 'w1 w2', usage: { type: 'duration', seconds: 3 } })
  t.match(
    await (await ask({ response_format: 'verbose_json', 'timestamp_granularities[]': 'word' })).json(),
    {
      task: 'transcribe',
      language: 'english',
      duration: 3,
      text: 'w1 w2',
      segments: [{ id: 0, start: 0, end: 3, text: 'w1 w2' }],
      words: [{ word: 'w1', start: 0, end: 1.5 }, { word: 'w2' }],
      usage: { type: 'duration', seconds: 3 },
    },
  )
  t.match(await (await ask({ response_format: 'diarized_json' })).json(), {
    segments: [{ speaker: 'A', text: 'w1 w2' }],
  })
  t.match(await (await ask({}, 'translations')).json(), { text: 'w1 w2' })
  const plain = await ask({ response_format: 'text' })
  t.match(plain.headers.get('content-type'), /^text\/plain/)
  t.equal(await plain.text(), 'w1 w2\n')
  const srt = await (await ask({ response_format: 'srt', model: 'sim,tokens=1,seconds=3725' })).text()
  t.equal(srt, '1\n00:00:00,000 --> 01:02:05,000\nw1\n\n')
  t.match(
    await (await ask({ response_format: 'vtt' })).text(),
    /^WEBVTT\n\n00:00:00\.000 --> 00:00:03\.000\n/,
  )
})

t.test('a transcription can be streamed, except from whisper-1', async t => {
  const { url } = await start(t)
  const ask = (model: string) =>
    fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', body: form({ model, stream: 'true' }) })
  const events = parseEvents(await (await ask('sim,tokens=2')).text())
  t.same(
    events.map(event => event.name),
    ['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done'],
  )
  t.equal(gather(events, 'delta'), 'w1 w2')
  t.match(events[2]?.data, {
    type: 'transcript.text.done',
    text: 'w1 w2',
    usage: { type: 'tokens', output_tokens: 2 },
  })
  t.match((await ask('whisper-1')).headers.get('content-type'), /^application\/json/)
})

t.test('a transcription request that is neither a valid form nor JSON is refused', async t => {
  const { url, post } = await start(t)
  const send = (type: string, body: string) =>
    fetch(`${url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-type': type }, body })
  t.equal((await send('text/plain', 'x')).status, 400)
  t.equal((await send('multipart/form-data; boundary=x', 'no form')).status, 400)
  t.equal((await send('multipart/form-data', 'no boundary')).status, 400)
  t.equal((await post('/v1/audio/transcriptions', { model: 'sim' })).status, 200, 'JSON is accepted in place of a form')
})
