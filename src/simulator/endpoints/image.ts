import type { Behaviour } from '../behaviour.ts'
import { errorEvent } from '../error.ts'
import { event } from '../event.ts'
import { count, list, string, type Json } from '../json.ts'
import { promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, sse, type SimulatedResponse } from '../simulated-response.ts'
import { countUsage, figure, type Counts } from '../usage.ts'

/** An image with one transparent pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
/** Output tokens of one image, for any size. */
const IMAGE_TOKENS = 272
const MAX_IMAGES = 10
const MAX_PARTIAL = 3

/** POST /v1/images/generations */
export function generateImage(request: SimulatedRequest): SimulatedResponse {
  return draw(request, 'image_generation', 0)
}

/** POST /v1/images/edits: each image in the request counts as many tokens as a generated image. */
export function editImage(request: SimulatedRequest): SimulatedResponse {
  const { form, json: body } = request
  const sent = form
    ? form.getAll('image').length + form.getAll('image[]').length
    : list(body['images'] ?? body['image']).length
  return draw(request, 'image_edit', sent)
}

function draw(request: SimulatedRequest, kind: string, sent: number): SimulatedResponse {
  const { behaviour } = request
  const field = (name: string): unknown => request.form?.get(name) ?? request.json[name]
  const images = Math.min(Math.max(count(field('n'), 1), 1), MAX_IMAGES)
  const prompt = promptTokens(field('prompt'))
  const imageInput = sent * IMAGE_TOKENS
  const counts = countUsage(behaviour, prompt + imageInput, images * IMAGE_TOKENS, 0)
  const usage = imageUsage(counts, imageInput, behaviour)
  const look = {
    background: string(field('background'), 'opaque'),
    output_format: string(field('output_format'), 'png'),
    quality: string(field('quality'), 'medium'),
    size: string(field('size'), '1024x1024'),
  }
  const b64 = picture(behaviour)
  if (String(field('stream')) !== 'true') {
    const linked = field('response_format') === 'url'
    const image: Json = linked ? { url: `data:image/png;base64,${b64}` } : { b64_json: b64 }
    return json({ created: request.now, ...look, data: Array<Json>(images).fill(image), usage })
  }
  const partial = Math.min(count(field('partial_images'), 0), MAX_PARTIAL)
  const shot = { b64_json: b64, created_at: request.now, ...look }
  const named = (data: Json) => event(data, string(data['type']))
  const events = function* () {
    for (let i = 0; i < partial; i++) {
      yield named({ type: `${kind}.partial_image`, partial_image_index: i, ...shot })
    }
  }
  const last = () => named({ type: `${kind}.completed`, ...shot, usage })
  return sse(events(), last, () => errorEvent('chat', ''))
}

/** An image that has as many bytes as `huge` sets. Clients ignore bytes after the end of the image. */
function picture(behaviour: Behaviour): string {
  const bytes = Math.max(PIXEL.length, behaviour.huge ?? 0)
  return Buffer.concat([PIXEL], bytes).toString('base64')
}

function imageUsage(counts: Counts, imageInput: number, behaviour: Behaviour): Json | undefined {
  if (behaviour.usage === 'none') return undefined
  return {
    input_tokens: figure(behaviour, counts.input),
    input_tokens_details: {
      text_tokens: figure(behaviour, Math.max(counts.input - imageInput, 0)),
      image_tokens: figure(behaviour, imageInput),
    },
    output_tokens: figure(behaviour, counts.output),
    output_tokens_details: { text_tokens: 0, image_tokens: figure(behaviour, counts.output) },
    total_tokens: figure(behaviour, counts.input + counts.output),
  }
}
