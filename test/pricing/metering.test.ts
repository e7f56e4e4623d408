import t from 'tap'
import { isMetered } from '../../src/pricing/metering.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'

t.test('endpoints that run a model are metered, and endpoints for lists and token counts are not', async t => {
  for (const endpoint of ['chat.completions', 'generate.embed', 'audio.speech', 'images.edits'] as const) {
    t.equal(isMetered(endpointNamed(endpoint)), true, endpoint)
  }
  for (const endpoint of ['models.list', 'models.get', 'messages.count_tokens', 'other'] as const) {
    t.equal(isMetered(endpointNamed(endpoint)), false, endpoint)
  }
})
