import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import { Attribution, claimsIn } from '../../src/attribution/attribution.ts'
import type { AttributionConfig } from '../../src/config/attribution-types.ts'
import { knownEndpoints } from '../../src/protocols/classify-path.ts'
import { inspectJson, jsonInspection, type InspectedBody } from '../../src/protocols/request/inspect.ts'

const CONFIG: AttributionConfig = {
  user: [{ from: 'header', name: 'x-user' }, { from: 'body' }],
  tags: new Map([['env', [{ from: 'tags' }]], ['project', [{ from: 'tags' }, { from: 'body' }]]]),
  require: ['project', 'user'],
  values: 1000,
}

const ENDPOINT = knownEndpoints().find(({ endpoint }) => endpoint.body === 'json')!.endpoint

function bodyOf(text: string): InspectedBody {
  const scan = jsonInspection(true)
  const bytes = Buffer.from(text)
  for (const byte of bytes) scan.push(Buffer.of(byte))
  return inspectJson(scan, bytes, null, ENDPOINT)
}

function read(headers: IncomingHttpHeaders, body: object | string | null = null, config = CONFIG) {
  const text = typeof body === 'object' && body !== null ? JSON.stringify({ model: 'm', ...body }) : body
  return new Attribution(config).read(headers, text === null ? null : bodyOf(text))
}

t.test('tags come from the header, and the first source of the list counts', async t => {
  t.strictSame(read({ 'x-gateway-tags': 'project = alpha , env=prod' }, { metadata: { project: 'beta' } }), {
    user: null, tags: { env: 'prod', project: 'alpha' }, ignored: [],
  })
  t.strictSame(read({}, { metadata: { project: 'beta' } }).tags, { project: 'beta' })
  t.strictSame(read({}, { labels: { project: 'gamma' } }).tags, { project: 'gamma' })
  t.strictSame(read({ 'x-gateway-tags': 'project=a=b' }).tags, { project: 'a=b' })
  t.equal(read({}).tags, null)
})

t.test('the user is read from its header, and from the members that vendors have for it', async t => {
  const all = { user: 'a', safety_identifier: 'b', metadata: { user_id: 'c' } }
  t.equal(read({ 'x-user': 'h' }, all).user, 'h')
  t.equal(read({}, all).user, 'a')
  t.equal(read({}, { ...all, user: null }).user, 'b')
  t.equal(read({}, { metadata: all.metadata }).user, 'c')
  t.equal(read({}, { labels: all.metadata }).user, null)
  t.equal(read({ 'x-gateway-tags': 'user=u1' }, null, { ...CONFIG, user: [{ from: 'tags' }] }).user, 'u1')
  t.strictSame(read({ 'x-gateway-tags': 'user=u1' }, null, { ...CONFIG, user: [{ from: 'tags' }] }).ignored, [])
})

t.test('claims of a verified token are a source', async t => {
  const config: AttributionConfig = {
    ...CONFIG,
    user: [{ from: 'claim', name: 'email' }, { from: 'header', name: 'x-user' }],
    tags: new Map([['project', [{ from: 'claim', name: 'org.project' }, { from: 'tags' }]]]),
  }
  t.strictSame(claimsIn(config), ['email', 'org.project'])
  const attribution = new Attribution(config)
  const headers = { 'x-user': 'h', 'x-gateway-tags': 'project=beta' }
  const claims = new Map([['email', 'ann@example.com'], ['org.project', 'alpha']])
  t.strictSame(attribution.read(headers, null, claims), { user: 'ann@example.com', tags: { project: 'alpha' }, ignored: [] })
  t.match(attribution.read(headers, null), { user: 'h', tags: { project: 'beta' } }, 'a key has no claims')
  t.match(attribution.read({}, null, new Map([['email', 'x'.repeat(256)]])), { user: null, ignored: ['claim email (longer than 128 characters)'] })
  t.equal(attribution.howToSend('user'), 'a token with the claim email, or the header x-user: VALUE')
})

t.test('a source that is not trusted is ignored and named', async t => {
  t.strictSame(read({ 'x-gateway-tags': 'team=x' }, { metadata: { env: 'dev', unrelated: 'x' } }), {
    user: null, tags: null, ignored: ['x-gateway-tags: team', 'metadata.env'],
  })
  const byHeader = { ...CONFIG, user: [{ from: 'header', name: 'x-user' }] } as const
  t.strictSame(read({}, { user: 'a', metadata: { user_id: 'b' } }, byHeader), { user: null, tags: null, ignored: ['user', 'metadata.user_id'] })
  t.strictSame(read({}, { user: 'a' }, { ...CONFIG, user: [] }).ignored, [], 'users are not read at all')
  const many = Array.from({ length: 200 }, (_, n) => `t${n}=1`).join()
  t.equal(read({ 'x-gateway-tags': many }).ignored.length, 10)
})

t.test('an invalid value is ignored with its reason, and the next source counts', async t => {
  for (const [value, why] of [
    ['x'.repeat(129), 'longer than 128 characters'], ['', 'empty'], ['a\u200bb', 'with characters that cannot be shown'],
    ['\ud800', 'with characters that cannot be shown'], [7, 'no text of at most 128 characters'],
    ['x'.repeat(10_000), 'no text of at most 128 characters'],
  ] as const) {
    const { tags, ignored } = read({}, { metadata: { project: value }, labels: { project: 'beta' } })
    t.strictSame(tags, { project: 'beta' })
    t.strictSame(ignored, [`metadata.project (${why})`])
  }
  t.strictSame(read({}, { metadata: { project: 'a', more: 'x'.repeat(65_536) } }).tags, null, 'a longer object is not searched')
  t.strictSame(read({ 'x-gateway-tags': 'project=' }).ignored, ['x-gateway-tags: project (empty)'])
})

t.test('values are any text, escaped or not, and the last of several counts', async t => {
  const unicode = 'Zoë – 東京 🚀'
  t.strictSame(read({ 'x-gateway-tags': Buffer.from(`project=${unicode}`).toString('latin1') }).tags, { project: unicode })
  t.strictSame(read({}, { metadata: { project: unicode } }).tags, { project: unicode })
  t.strictSame(read({}, '{"model":"m","metadata":{"project":"a","\\u0070roject":"\\u0062"}}').tags, { project: 'b' })
  t.strictSame(read({}, '{"model":"m","metadata":{"project":"a"},"metadata":{"env":"x"}}').tags, null)
  for (const odd of ['[]', '"project"', 'null', '{"project":{"project":"a"}}']) {
    t.equal(read({}, `{"model":"m","metadata":${odd}}`).tags, null)
  }
})

t.test('a missing name is found, with how to send it', async t => {
  const attribution = new Attribution(CONFIG)
  const found = (headers: IncomingHttpHeaders) => attribution.missing(attribution.read(headers, null))
  t.equal(found({}), 'project')
  t.equal(found({ 'x-gateway-tags': 'project=a' }), 'user')
  t.equal(found({ 'x-gateway-tags': 'project=a', 'x-user': 'u' }), null)
  t.equal(attribution.howToSend('user'), 'the header x-user: VALUE, or user, safety_identifier or metadata.user_id in the body')
  t.equal(attribution.howToSend('project'), 'the header x-gateway-tags: project=VALUE, or metadata.project or labels.project in the body')
})

t.test('values of a tag are bounded, also over a reload; users are not', async t => {
  const before = new Attribution({ ...CONFIG, values: 2 })
  const tagged = (attribution: Attribution, n: number) =>
    attribution.read({ 'x-gateway-tags': `project=p${n}`, 'x-user': `u${n}` }, null)
  for (const n of [0, 1]) t.strictSame(tagged(before, n).tags, { project: `p${n}` })
  const after = new Attribution({ ...CONFIG, values: 2 }, before.values)
  t.match(tagged(after, 2), { tags: { project: 'other' }, user: 'u2' })
  t.strictSame(tagged(after, 1).tags, { project: 'p1' })
})

t.test('tags of the key count where the source key is listed', async t => {
  const tags = new Map([['env', [{ from: 'tags' }]], ['project', [{ from: 'key' }, { from: 'tags' }]]] as const)
  const attribution = new Attribution({ ...CONFIG, tags })
  const key = new Map([['project', 'alpha'], ['env', 'prod'], ['constructor', 'x']])
  t.strictSame(attribution.read({ 'x-gateway-tags': 'project=beta' }, null, undefined, key).tags, { project: 'alpha' }, 'the key comes first, and env is not read from it')
  t.strictSame(attribution.read({ 'x-gateway-tags': 'project=beta' }, null).tags, { project: 'beta' })
})
