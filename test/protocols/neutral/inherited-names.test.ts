import t from 'tap'
import type { Test } from 'tap'
import { REQUESTS } from '../../fuzz/requests.ts'
import { RESPONSES } from '../../fuzz/responses.ts'
import { render, renderItems } from '../../fuzz/template.ts'
import { StreamTranslator } from '../../../src/protocols/neutral/translate/translate-response.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { PROVIDER, bodyBetween, clientSide, contextOf, requestBetween, upstreamSide } from '../../support/translation.ts'

/*
 * Words that every object inherits are unknown words: each string and each name of a member, of requests and of
 * responses, has the same outcome with one of them as with any other unknown word.
 */
const WORDS = [['__proto__', '__qqqqq__'], ['constructor', 'qqqqqqqqqqq'], ['toString', 'qqqqqqqq']] as const
/** Also matches changed spellings of a word, such as `_Proto__` or `-proto-`. */
const SPELLINGS = /proto|constructor|tostring/g
const CLIENTS = ['chat', 'responses', 'messages', 'generate']
const UPSTREAMS = [...CLIENTS, 'converse']
/** Texts, signatures and ids that a translation may compress, so that the word is no longer visible. */
const COMPRESSED = /^(?:text|thinking|delta|reasoning_content|signature|thoughtSignature|encrypted_content|id|call_id|toolUseId)$/

type Names = readonly (string | number)[]

for (const [name, { protocol, body }] of Object.entries(REQUESTS)) {
  if (!CLIENTS.includes(name)) continue
  const request = JSON.parse(render(body)) as JsonObject
  for (const to of UPSTREAMS.filter(each => each !== protocol)) {
    t.test(`inherited names count as unknown words: request ${name} -> ${to}`, async t => {
      compare(t, request, changed => requestBetween(protocol, to, changed as JsonObject, to === 'converse' ? 'anthropic.claude-sonnet-4-5-20250929-v1:0' : 'up'))
    })
  }
}

for (const from of UPSTREAMS) {
  for (const to of CLIENTS.filter(each => each !== from)) {
    t.test(`inherited names count as unknown words: response ${from} -> ${to}`, async t => {
      const responses = (RESPONSES[from] ?? []).map(({ body }) => JSON.parse(render(body)) as JsonObject)
      for (const response of responses) compare(t, response, changed => bodyBetween(to, from, changed as JsonObject))
      for (const response of responses) compare(t, response, changed => upstreamSide(from).readError(500, changed))
    })

    t.test(`inherited names count as unknown words: stream ${from} -> ${to}`, async t => {
      for (const { framing, body } of RESPONSES[`${from} stream`] ?? []) {
        if (framing === 'whole') continue
        const events = renderItems(body).filter(text => text !== '[DONE]').map(text => JSON.parse(text) as JsonObject)
        compare(t, events, changed => streamed(to, from, changed as JsonObject[]))
      }
    })
  }
}

function streamed(to: string, from: string, events: readonly JsonObject[]): string {
  const translator = new StreamTranslator(clientSide(to), upstreamSide(from), contextOf(to), PROVIDER)
  for (const event of events) {
    const [[name, value] = ['', null]] = Object.entries(event)
    if (from === 'converse') translator.event(name, value)
    else translator.event(typeof event['type'] === 'string' ? event['type'] : '', event)
  }
  translator.end()
  return translator.take().toString()
}

/** Compares the outcomes with both words, for one place after another. */
function compare(t: Test, body: unknown, translate: (body: unknown) => unknown): void {
  const outcome = (changed: unknown): string => {
    try {
      return unify(JSON.stringify(translate(changed)))
    } catch (error) {
      return unify(String(error))
    }
  }
  for (const { at, isName } of placesOf(body)) {
    for (const [word, unknown] of WORDS) {
      const found = outcome(withWord(body, at, word, isName))
      const expected = outcome(withWord(body, at, unknown, isName))
      if (found !== expected) t.equal(found, expected, `${word} ${isName ? 'as the name of' : 'at'} ${at.join('.')}`)
    }
  }
}

interface Place {
  readonly at: Names
  /** The name of the member, not its value. */
  readonly isName: boolean
}

function unify(text: string): string {
  return text.toLowerCase().replaceAll(SPELLINGS, word => 'q'.repeat(word.length))
}

function placesOf(value: unknown, at: Names = []): Place[] {
  if (typeof value === 'string') return COMPRESSED.test(String(at.at(-1))) ? [] : [{ at, isName: false }]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    ...Array.isArray(value) ? [] : [{ at: [...at, key], isName: true }], ...placesOf(inner, [...at, key]),
  ])
}

function withWord(value: unknown, [key, ...rest]: Names, word: string, isName: boolean): unknown {
  if (key === undefined) return word
  if (Array.isArray(value)) return value.with(Number(key), withWord(value[Number(key)], rest, word, isName))
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, inner]) => {
    if (name !== key) return [name, inner]
    return isName && rest.length === 0 ? [word, inner] : [name, withWord(inner, rest, word, isName)]
  }))
}
