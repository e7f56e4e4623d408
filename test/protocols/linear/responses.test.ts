import { readFileSync } from 'node:fs'
import t from 'tap'
import { PROTOCOLS } from '../../../src/protocols/index.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { StreamTranslator } from '../../../src/protocols/neutral/translate/translate-response.ts'
import { PROVIDER, bodyBetween, clientSide, contextOf, upstreamSide } from '../../support/translation.ts'
import { isQuadratic, listsIn, numbered, openObjectsIn, repeated, withLists, withMembers } from './growth.ts'
import type { Copies } from './growth.ts'
import { REQUESTS } from './request-samples.ts'
import { NOT_IN_RESPONSES, RESPONSES } from './response-samples.ts'
import type { SampleEvent } from './response-samples.ts'

const ENTRIES = 2500
const CLIENTS = PROTOCOLS.filter(({ translation }) => translation?.client).map(({ name }) => name)
const UPSTREAMS = PROTOCOLS.filter(({ translation }) => translation?.upstream).map(({ name }) => name)
const COPIES = ['same', 'numbered'] as const

t.test('the sample response of each protocol has every type that its reader knows', async t => {
  t.strictSame(Object.keys(RESPONSES).toSorted(), UPSTREAMS.toSorted())
  for (const name of UPSTREAMS) {
    const source = readFileSync(new URL(`../../../src/protocols/${name}/read-response.ts`, import.meta.url), 'utf8')
    const words = [...source.matchAll(/case '(.+?)'/g)].map(([, word]) => word as string)
    const sample = JSON.stringify(RESPONSES[name])
    t.strictSame(words.filter(word => !NOT_IN_RESPONSES.has(`${name}: ${word}`) && !sample.includes(`"${word}"`)), [], name)
  }
})

/** Ways to repeat the events of a stream. */
const STREAMS: Readonly<Record<string, (events: readonly SampleEvent[], entries: number, copies: Copies) => readonly SampleEvent[]>> = {
  // Each event is repeated before the next event.
  'each event many times': (events, entries, copies) => events.flatMap((event, at) => (
    isEdge(events, at) ? [event] : repeated([event], entries / events.length, copies) as SampleEvent[]
  )),
  'the events many times': (events, entries, copies) => [
    ...events.slice(0, 1), ...repeated(events.slice(1, -2), entries, copies) as SampleEvent[], ...events.slice(-2),
  ],
}

for (const from of UPSTREAMS) {
  const { body, events } = RESPONSES[from] as { readonly body: JsonObject, readonly events: readonly SampleEvent[] }
  for (const to of CLIENTS.filter(name => name !== from)) {
    t.test(`${from} to ${to}: the time to translate a response grows linearly`, async t => {
      const request = toolsOf(to)
      const wholes = listsIn(body).flatMap(({ path }) => COPIES.filter(copies => isQuadratic(entries => {
        const grown = withLists(body, [path], entries, copies) as JsonObject
        return () => bodyBetween(to, from, grown, request)
      }, ENTRIES)).map(copies => `${copies}: ${path.join('.')}`))
      t.strictSame(wholes, [], 'a whole body')
      const objects = openObjectsIn(body).filter(path => isQuadratic(entries => {
        const grown = withMembers(body, path, entries) as JsonObject
        return () => bodyBetween(to, from, grown, request)
      }, ENTRIES))
      t.strictSame(objects, [], 'objects of a whole body')
      const context = contextOf(to, request)
      const stream = (each: readonly SampleEvent[]) => () => {
        const translator = new StreamTranslator(clientSide(to), upstreamSide(from), context, PROVIDER)
        for (const [name, data] of each) {
          translator.event(name, data)
          translator.take()
        }
        translator.end()
        translator.take()
      }
      const lists = listsIn(events.map(([, data]) => data)).filter(({ path }) => path.length > 0).flatMap(({ path }) => COPIES.filter(copies => isQuadratic(entries => {
        const grown = withLists(events.map(([, data]) => data), [path], entries, copies) as JsonObject[]
        return stream(events.map(([name], at) => [name, grown[at] as JsonObject]))
      }, ENTRIES)).map(copies => `${copies}: ${path.join('.')}`))
      t.strictSame(lists, [], 'lists in an event')
      const one = events.flatMap((event, at) => isEdge(events, at) ? [] : COPIES.filter(copies => isQuadratic(entries => stream([
        ...events.slice(0, at), ...repeated([event], entries, copies) as SampleEvent[], ...events.slice(at),
      ]), ENTRIES)).map(copies => `${copies}: ${JSON.stringify(event)}`))
      t.strictSame(one, [], 'an event many times')
      const streams = Object.entries(STREAMS).flatMap(([kind, grow]) => COPIES.filter(copies => isQuadratic(entries => stream(grow(events, entries, copies)), ENTRIES))
        .map(copies => `${copies}: ${kind}`))
      t.strictSame(streams, [])
    })
  }
}

/** The first event begins the response, and the last two end it. */
function isEdge(events: readonly SampleEvent[], at: number): boolean {
  return at === 0 || at >= events.length - 2
}

/** A request with many tools, which a writer looks up. */
function toolsOf(client: string): JsonObject {
  const { tools } = REQUESTS[client] as { readonly tools: readonly JsonObject[] }
  return { tools: Array.from({ length: ENTRIES }, (_, n) => numbered(tools[0], n)) }
}
