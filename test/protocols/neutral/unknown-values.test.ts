import t from 'tap'
import { requestBetween } from '../../support/translation.ts'

/*
 * A value that no protocol knows is dropped and reported, so that the target does not refuse the request.
 */

const image = { url: 'data:image/png;base64,AAAA', detail: 'utmost' }
const chat = { messages: [{ role: 'user', content: 'Hi' }] }
const responses = { input: 'Hi' }
const messages = { max_tokens: 9000, messages: [{ role: 'user', content: 'Hi' }] }
const generate = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }

/** The client's protocol, what it sends, the value, and the field that is named. */
const CASES: readonly (readonly [from: string, body: Record<string, unknown>, value: string, field: string])[] = [
  ['chat', { ...chat, reasoning_effort: 'utmost' }, 'utmost', 'reasoning_effort'],
  ['chat', { ...chat, verbosity: 'utmost' }, 'utmost', 'verbosity'],
  ['chat', { ...chat, service_tier: 'utmost' }, 'utmost', 'service_tier'],
  ['chat', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: image }] }] }, 'utmost', 'messages[].content[].image_url.detail'],
  ['responses', { ...responses, reasoning: { effort: 'utmost' } }, 'utmost', 'reasoning.effort'],
  ['responses', { ...responses, reasoning: { summary: 'utmost' } }, 'auto', 'reasoning.summary'],
  ['responses', { ...responses, text: { verbosity: 'utmost' } }, 'utmost', 'text.verbosity'],
  ['responses', { ...responses, service_tier: 'utmost' }, 'utmost', 'service_tier'],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: image.url, detail: 'utmost' }] }] }, 'utmost', 'input[].content[].detail'],
  ['messages', { ...messages, output_config: { effort: 'utmost' } }, 'utmost', 'output_config.effort'],
  ['messages', { ...messages, thinking: { type: 'utmost' } }, 'thinking', 'thinking.type'],
  ['messages', { ...messages, thinking: { type: 'adaptive', display: 'utmost' } }, 'utmost', 'thinking.display'],
  ['messages', { ...messages, service_tier: 'utmost' }, 'utmost', 'service_tier'],
  ['messages', { ...messages, system: [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral', ttl: 'utmost' } }] }, 'utmost', 'system[].cache_control.ttl'],
  ['generate', { ...generate, generationConfig: { thinkingConfig: { thinkingLevel: 'UTMOST' } } }, 'utmost', 'generationConfig.thinkingConfig.thinkingLevel'],
  ['generate', { ...generate, serviceTier: 'utmost' }, 'utmost', 'serviceTier'],
]

for (const [from, body, value, field] of CASES) {
  for (const to of ['chat', 'responses', 'messages', 'generate', 'converse']) {
    if (from === to) continue
    t.test(`${from} -> ${to}: an unknown value of ${field} is dropped and reported`, async t => {
      const written = requestBetween(from, to, body, 'anthropic.claude-sonnet-4-5-20250929-v1:0')
      t.notMatch(JSON.stringify(written.body).toLowerCase(), `"${value}"`)
      t.ok(written.dropped.includes(field), written.dropped.join(', '))
    })
  }
}
