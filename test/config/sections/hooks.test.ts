import t, { type Test } from 'tap'
import { LEAST, load as loadText } from '../../behaviour/config/loading.ts'

function load(t: Test, hooks: string) {
  return loadText(t, `hooks: ${hooks}\n${LEAST}auth: open\n`).config.hooks
}

t.test('a hook has defaults', async t => {
  t.same(load(t, '{ dlp: { url: https://dlp.internal/check?mode=1 } }').get('dlp'), {
    name: 'dlp', url: 'https://dlp.internal/check?mode=1', onRequest: true, onResponse: false, send: 'metadata', timeout: 1000, whenDown: 'refuse',
    concurrency: 64, secret: null, tap: false, all: false, ca: null, proxy: null,
  })
  t.match(load(t, '{ a: { url: "http://[::1]:1/", tap: true, on: [response] }, b: { url: http://10.0.0.1/, plain_http: true } }').get('a'), {
    onRequest: false, onResponse: true, tap: true,
  })
  t.equal(loadText(t, `${LEAST}auth: open\n`).config.hooks.size, 0)
})

t.test('an invalid value is reported with line and column', async t => {
  for (const [hook, problem] of [
    ['{ url: dlp.internal }', /gateway\.yaml:1:\d+.*not an http or https URL/s],
    ['{ url: http://dlp.internal/check }', /gateway\.yaml:1:\d+.*unencrypted.*plain_http: true/s],
    ['{ url: "https://user:pw@dlp.internal/" }', /must not contain credentials/],
    ['{ url: "https://dlp.internal/#x" }', /must not have a part from # on/],
    ['{ url: https://d, tap: true, when_down: allow }', /a tap decides nothing/],
    ['{ url: https://d, on: [response] }', /only a hook with tap: true/],
    ['{ url: https://d, timeout: 2m }', /must be at most 60s/],
    ['{ url: https://d, secret: short }', /gateway\.yaml:1:\d+/],
    ['{ url: https://d, tapp: true }', /unknown key "tapp" in hooks.dlp; did you mean "tap"/],
    ['{}', /gateway\.yaml:1:\d+/],
  ] as const) {
    t.throws(() => load(t, `{ dlp: ${hook} }`), { message: problem }, hook)
  }
  t.throws(() => loadText(t, `hooks: { dlp: { url: https://d } }\n${LEAST}keys: [{ name: a, key: sk-0123456789abcdef, hooks: [dpl] }]\n`), {
    message: /no hook "dpl"; did you mean "dlp"/,
  })
})
