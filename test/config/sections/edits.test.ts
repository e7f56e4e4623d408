import t, { type Test } from 'tap'
import { LEAST, load as loadText } from '../../behaviour/config/loading.ts'

function load(t: Test, edit: string) {
  return loadText(t, `edit: ${edit}\n${LEAST}auth: open\n`).config.edit
}

t.test('an edit has the values of the file', t => {
  t.same(load(t, '{ request_headers: { set: { X-Team: "a {key} {tag:project}" }, remove: [X-Debug] }, body: { set: { metadata: { a: [1, null] }, seed: 1 }, cap: { temperature: 0.5 } } }'), {
    requestHeaders: { set: [{ name: 'x-team', value: ['a ', { of: 'key' }, ' ', { of: 'tag', tag: 'project' }] }], default: [], remove: ['x-debug'] },
    responseHeaders: null,
    body: { set: new Map<string, unknown>([['metadata', { a: [1, null] }], ['seed', 1]]), default: new Map(), cap: new Map([['temperature', 0.5]]), remove: [] },
    system: null, cache: false,
  })
  t.equal(loadText(t, `${LEAST}auth: open\n`).config.edit, null)
  t.end()
})

t.test('an edit that cannot work is reported with line and column', t => {
  for (const [edit, problem] of [
    ['{ request_headers: { set: { authorization: x } } }', /gateway\.yaml:1:\d+.*holds a credential/s],
    ['{ request_headers: { set: { X-Api-Key: x } } }', /holds a credential/],
    ['{ request_headers: { default: { x-gateway-tags: x } } }', /sets this header itself/],
    ['{ response_headers: { remove: [content-length] } }', /gateway sets this header itself/],
    ['{ request_headers: { set: { "a b": x } } }', /not a header name/],
    ['{ request_headers: { set: { x-a: "{kye}" } } }', /\{kye\} stands for nothing; did you mean "key"/],
    ['{ body: { set: { model: gpt-5 } } }', /model cannot be edited; routes choose models/],
    ['{ body: { set: { STREAM: true } } }', /STREAM cannot be edited/],
    ['{ body: { remove: [messages] } }', /messages cannot be edited/],
    ['{ body: { remove: [a..b] } }', /a dot stands between two names/],
    ['{ body: { cap: { temperature: high } } }', /gateway\.yaml:1:\d+/],
    ['{ body: { sett: {} } }', /unknown key "sett".*did you mean "set"/],
    ['{ cache: manual }', /gateway\.yaml:1:\d+/],
    ['{}', /gateway\.yaml:1:\d+/],
  ] as const) {
    t.throws(() => load(t, edit), { message: problem }, edit)
  }
  t.end()
})
