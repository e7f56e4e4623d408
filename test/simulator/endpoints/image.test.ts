import t from 'tap'
import { at, parseEvents, start } from '../start.ts'

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

t.test('an image response has the requested number of images and usage', async t => {
  const { post } = await start(t)
  const body = await (await post('/v1/images/generations', { model: 'sim', prompt: '12345678', n: 2 })).json()
  t.match(body, {
    created: Number,
    data: [{ b64_json: String }, { b64_json: String }],
    size: '1024x1024',
    usage: {
      input_tokens: 2,
      input_tokens_details: { text_tokens: 2, image_tokens: 0 },
      output_tokens: 544,
      total_tokens: 546,
    },
  })
  const bytes = Buffer.from(String(at(body, 'data', 0, 'b64_json')), 'base64')
  t.same(bytes.subarray(0, 8), PNG)
  const linked = { model: 'sim', prompt: 'x', response_format: 'url' }
  t.match(await (await post('/v1/images/generations', linked)).json(), {
    data: [{ url: /^data:image\/png/ }],
  })
  const huge = await (await post('/v1/images/generations', { model: 'sim,huge=1mb', prompt: 'x' })).json()
  t.equal(Buffer.from(String(at(huge, 'data', 0, 'b64_json')), 'base64').length, 1024 * 1024)
})

t.test('an image stream has partial images and a last event with usage', async t => {
  const { post } = await start(t)
  const body = { model: 'sim', prompt: '1234', stream: true, partial_images: 2 }
  const events = parseEvents(await (await post('/v1/images/generations', body)).text())
  t.same(
    events.map(event => event.name),
    ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed'],
  )
  t.match(events[1]?.data, {
    type: 'image_generation.partial_image',
    partial_image_index: 1,
    b64_json: String,
  })
  t.match(events[2]?.data, {
    type: 'image_generation.completed',
    usage: { input_tokens: 1, output_tokens: 272 },
  })
})

t.test('an image edit counts the images of the request as input tokens', async t => {
  const { url } = await start(t)
  const data = new FormData()
  data.append('model', 'sim')
  data.append('prompt', '1234')
  data.append('image[]', new Blob(['x']))
  data.append('image[]', new Blob(['x']))
  const res = await fetch(`${url}/v1/images/edits`, { method: 'POST', body: data })
  t.match(await res.json(), {
    data: [{ b64_json: String }],
    usage: { input_tokens: 545, input_tokens_details: { text_tokens: 1, image_tokens: 544 } },
  })
})
