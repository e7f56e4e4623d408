import { readFileSync, readdirSync } from 'node:fs'
import t from 'tap'
import { GatewayError } from '../../../src/base/errors.ts'
import { PROTOCOLS } from '../../../src/protocols/index.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { clientSide, requestBetween } from '../../support/translation.ts'
import { isQuadratic, listsIn, openObjectsIn, repeated, withLists, withMembers } from './growth.ts'
import { NOT_IN_REQUESTS, REQUESTS } from './request-samples.ts'

const ENTRIES = 2500
const CLIENTS = PROTOCOLS.filter(({ translation }) => translation?.client).map(({ name }) => name)
const UPSTREAMS = PROTOCOLS.filter(({ translation }) => translation?.upstream).map(({ name }) => name)
const COPIES = ['same', 'numbered'] as const

t.test('the sample request of each protocol has every type that its reader knows', async t => {
  t.strictSame(Object.keys(REQUESTS).toSorted(), CLIENTS.toSorted())
  for (const name of CLIENTS) {
    const folder = new URL(`../../../src/protocols/${name}/`, import.meta.url)
    const sources = readdirSync(folder).filter(file => /^read-(?!response)/.test(file)).map(file => readFileSync(new URL(file, folder), 'utf8'))
    const words = sources.flatMap(source => [...source.matchAll(/case '(.+?)'/g)].map(([, word]) => word as string))
    const sample = JSON.stringify(REQUESTS[name])
    t.strictSame(words.filter(word => !NOT_IN_REQUESTS.has(`${name}: ${word}`) && !sample.includes(`"${word}"`)), [], name)
  }
})

for (const from of CLIENTS) {
  for (const to of UPSTREAMS.filter(name => name !== from)) {
    t.test(`${from} to ${to}: the time to translate a request grows linearly`, async t => {
      const translate = (body: unknown): unknown => requestBetween(from, to, body as JsonObject)
      const sample = withoutRefused(REQUESTS[from] as JsonObject, translate)
      t.doesNotThrow(() => translate(sample))
      const lists = listsIn(sample)
      const levels = [0, 1, 2].map(level => lists.filter(list => list.level === level || (list.level < level && !list.hasLists)))
      const grown = [...lists.map(list => [list]), ...levels].map(each => each.map(({ path }) => path))
      const quadratic = grown.flatMap(paths => COPIES.filter(copies => isQuadratic(entries => {
        const body = withLists(sample, paths, Math.ceil(entries / paths.length), copies)
        return () => attempt(() => translate(body))
      }, ENTRIES)).map(copies => `${copies}: ${paths.map(path => path.join('.')).join(' and ')}`))
      t.strictSame(quadratic, [])
      const objects = [[], ...openObjectsIn(sample)].filter(path => isQuadratic(entries => {
        const body = withMembers(sample, path, entries)
        return () => attempt(() => translate(body))
      }, ENTRIES))
      t.strictSame(objects, [], 'objects')
    })
  }
}

const VALUES: Readonly<Record<string, (entries: number) => unknown>> = {
  texts: entries => repeated(['text'], entries, 'numbered'),
  objects: entries => repeated([{ type: 'text', name: 'a', id: 'b' }], entries, 'numbered'),
  members: entries => Object.fromEntries(repeated(['a'], entries, 'numbered').map(name => [name, 'x'])),
  text: entries => 'a;'.repeat(8 * entries),
}

for (const from of CLIENTS) {
  t.test(`${from}: the time to translate a field grows linearly, for every type of value`, async t => {
    const to = UPSTREAMS.find(name => name !== from) as string
    const quadratic = Object.keys(clientSide(from).fields).flatMap(path => Object.keys(VALUES).filter(kind => isQuadratic(entries => {
      const body = path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), VALUES[kind]?.(entries)) as JsonObject
      return () => attempt(() => requestBetween(from, to, body))
    }, ENTRIES)).map(kind => `${path}: ${kind}`))
    t.strictSame(quadratic, [])
  })
}

/** @returns the sample without the entries that the target refuses, because a refusal ends the translation */
function withoutRefused(sample: JsonObject, translate: (body: unknown) => unknown): unknown {
  let left: unknown = sample
  for (let refusal = refusalOf(left, translate); refusal !== null; refusal = refusalOf(left, translate)) {
    const known: string = refusal
    const smaller: unknown = withoutEach(left).find(body => refusalOf(body, translate) !== known)
    if (smaller === undefined) throw new Error(`the sample is refused: ${known}`)
    left = smaller
  }
  return left
}

function refusalOf(body: unknown, translate: (body: unknown) => unknown): string | null {
  try {
    translate(body)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error.message.replaceAll(/\d+/g, '')
    throw error
  }
}

/** @returns copies of the value, each without one entry of a list, innermost lists first */
function withoutEach(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if (!Array.isArray(value)) return Object.entries(value).flatMap(([name, member]) => withoutEach(member).map(inner => ({ ...value, [name]: inner })))
  const inner = value.flatMap((item, at) => withoutEach(item).map(smaller => value.with(at, smaller) as unknown))
  return [...inner, ...value.map((_, at) => value.toSpliced(at, 1) as unknown)]
}

function attempt(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
  }
}
