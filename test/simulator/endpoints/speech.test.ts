import t from 'tap'
import { at, parseEvents, start } from '../start.ts'

t.test('a speech response consists of silent audio frames', async t => {
  const { post } = await start(t)
  const speak = (body: object) =>
    post('/v1/audio/speech', { model: 'sim,tokens=3', input: '12345678', voice: 'alloy', ...body })
  const mp3 = await speak({})
  t.equal(mp3.headers.get('content-type'), 'audio/mpeg')
  const bytes = Buffer.from(await mp3.arrayBuffer())
  t.equal(bytes.length, 3 * 417)
  t.equal(bytes.readUInt16BE(417), 0xfffb, 'the second frame follows the first')
  const wav = await speak({ response_format: 'wav' })
  t.equal(wav.headers.get('content-type'), 'audio/wav')
  const riff = Buffer.from(await wav.arrayBuffer())
  t.equal(riff.toString('latin1', 0, 4) + riff.toString('latin1', 8, 16), 'RIFFWAVEfmt ')
  t.equal(riff.length, 44 + 3 * 960)
  const huge = await speak({ model: 'sim,huge=100kb' })
  t.equal((await huge.arrayBuffer()).byteLength, 102_400)
})

t.test('a speech stream has usage in its last event', async t => {
  const { post } = await start(t)
  const body = { model: 'sim,tokens=2', input: '12345678', voice: 'alloy', stream_format: 'sse' }
  const events = parseEvents(await (await post('/v1/audio/speech', body)).text())
  t.same(
    events.map(event => event.name),
    ['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done'],
  )
  t.equal(Buffer.from(String(at(events[0]?.data, 'audio')), 'base64').length, 417)
  t.match(events[2]?.data, { usage: { input_tokens: 2, output_tokens: 2, total_tokens: 4 } })
})
