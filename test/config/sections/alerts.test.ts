import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

t.test('the webhook and the budget thresholds are read', async t => {
  t.equal(load(t, LEAST).config.alerts, null)
  t.strictSame(load(t, `${LEAST}\nalerts: { webhook: { url: "https://hooks.test/x" } }\n`).config.alerts, {
    webhook: { url: 'https://hooks.test/x', headers: {}, secret: null }, budget: [80, 100],
  })
  const { config } = load(t, `${LEAST}\nalerts: { webhook: { url: "http://h", headers: { a: b }, secret: 0123456789abcdefx }, budget: [100, 5] }\n`)
  t.match(config.alerts, { webhook: { headers: { a: 'b' }, secret: '0123456789abcdefx' }, budget: [5, 100] })
})

t.test('error messages name the key and contain no secret', async t => {
  for (const [text, message] of [
    ['alerts: { webhook: { url: "ftp://s3cret" } }', /this is not a URL such as https:/],
    ['alerts: { webhook: {} }', /url/],
    ['alerts: { budget: [0] }', /budget/],
    ['alerts: { webhook: { url: "https://h/s3cret", sekret: s3cret } }', /did you mean \\"secret\\"/],
  ] as const) {
    const found = JSON.stringify(problems(t, `${LEAST}\n${text}\n`))
    t.match(found, message, text)
    t.notMatch(found, 's3cret', text)
  }
})
