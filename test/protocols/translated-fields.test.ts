import t from 'tap'
import { PROTOCOLS } from '../../src/protocols/index.ts'
import { outcomeOf } from '../../src/protocols/neutral/fields.ts'
import type { FieldRule, FieldTable } from '../../src/protocols/neutral/translation.ts'
import { sdkFields } from '../support/sdk/fields.ts'
import { nestedOutcomes } from '../support/sdk/nested-outcomes.ts'
import { clientSide, requestBetween, upstreamSide } from '../support/translation.ts'

/** The protocols with clients and upstreams: each of the twelve pairs is translated. */
const NAMES = PROTOCOLS.filter(({ translation }) => translation?.client && translation.upstream).map(({ name }) => name)
const tableOf = (name: string): FieldTable => clientSide(name).fields

/** Fields that the SDK does not have, and clients send: to other vendors, or from older versions. */
const NOT_IN_SDK: Readonly<Record<string, readonly string[]>> = {
  chat: ['top_k'], responses: [], messages: ['temperature', 'top_k', 'top_p'], generate: [],
}

const fields = sdkFields((protocol, path) => Object.keys(tableOf(protocol)).some(field => field.startsWith(`${path}.`)))

for (const [protocol, paths] of Object.entries(fields)) {
  t.test(`${protocol}: every field of the vendor's SDK has a rule`, async t => {
    t.ok(paths.length > 20, 'the compiler finds the fields')
    t.strictSame(paths.filter(path => !Object.hasOwn(tableOf(protocol), path)), [], 'fields without a rule')
    t.strictSame(Object.keys(tableOf(protocol)).filter(path => !paths.includes(path)).toSorted(), NOT_IN_SDK[protocol], 'rules without a field')
  })
}

t.test('each pair of protocols has an outcome for each field', async t => {
  t.strictSame(NAMES.toSorted(), Object.keys(fields).toSorted())
  const pairs = NAMES.flatMap(from => NAMES.filter(to => to !== from).map(to => [from, to] as const))
  t.equal(pairs.length, 12)
  for (const [from, to] of pairs) {
    for (const path of fields[from as keyof typeof fields]) {
      const outcome = outcomeOf(tableOf(from)[path] as FieldRule, upstreamSide(to).support)
      t.match(outcome, /^(mapped|partly|dropped|refused|ignored)$/, `${from} -> ${to}: ${path}`)
    }
  }
})

t.test('each nested field of the vendors\' SDKs is read, refused, or reported as dropped', async t => {
  const outcomes = nestedOutcomes()
  for (const [protocol, rules] of Object.entries(outcomes)) t.ok(rules.length > 80, `${protocol}: the compiler finds ${rules.length}`)
  const outcome = (protocol: keyof typeof outcomes, parent: string, kind: string | null, name: string): string | undefined => (
    outcomes[protocol].find(rule => rule.parent === parent && rule.kind === kind && rule.name === name)?.outcome
  )
  t.equal(outcome('chat', 'messages[]', 'assistant', 'audio'), 'refused')
  t.equal(outcome('chat', 'messages[].content[].image_url', null, 'detail'), 'taken')
  t.equal(outcome('responses', 'input[].content[]', 'output_text', 'annotations'), 'dropped')
  t.equal(outcome('responses', 'input[]', 'web_search_call', 'action'), 'whole')
  t.equal(outcome('responses', 'input[]', 'function_call_output', 'caller'), 'taken', 'the model itself called')
  t.equal(outcome('messages', 'tools[]', null, 'input_examples'), 'dropped')
  t.equal(outcome('generate', 'contents[].parts[]', null, 'videoMetadata'), 'dropped')
})

t.test('an encrypted compacted conversation is refused, and a compacted conversation of text is kept', async t => {
  const input = [{ type: 'compaction', encrypted_content: 'x' }, { role: 'user', content: 'Go on' }]
  t.throws(() => requestBetween('responses', 'chat', { input }), { code: 'not_translatable', param: 'input[0].type' })
  const messages = [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: [{ type: 'compaction', content: 'They said hi.', signature: 'x' }] }]
  const { body, dropped } = requestBetween('messages', 'chat', { messages })
  t.match(body['messages'], [{}, { role: 'assistant', content: 'They said hi.' }])
  t.strictSame(dropped, [])
})

t.test('the detail of an image is reported as dropped if the target has no such field', async t => {
  const request = (detail: string): Record<string, unknown> => ({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png', detail } }] }] })
  for (const to of ['messages', 'generate', 'converse']) {
    const inline = JSON.parse(JSON.stringify(request('low')).replace('https://a.example/b.png', 'data:image/png;base64,AAAA')) as Record<string, unknown>
    t.strictSame(requestBetween('chat', to, inline).dropped, ['messages[].content[].detail'], to)
    t.strictSame(requestBetween('chat', to === 'converse' ? 'messages' : to, request('auto')).dropped, [], to)
  }
})
