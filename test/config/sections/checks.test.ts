import t, { type Test } from 'tap'
import { LEAST, load as loadText } from '../../behaviour/config/loading.ts'

function load(t: Test, checks: string) {
  return loadText(t, `checks: ${checks}\n${LEAST}auth: open\n`).config.checks
}

t.test('a check has defaults', async t => {
  t.same(load(t, '{ a: { find: secrets, on: [request] } }').get('a'), { name: 'a', find: ['secrets'], size: null, action: 'refuse', all: false })
  t.same(load(t, '{ a: { find: [email, ip, email], action: mask, all: true } }').get('a'), {
    name: 'a', find: ['email', 'ip'], size: null, action: 'mask', all: true,
  })
  t.equal(loadText(t, `${LEAST}auth: open\n`).config.checks.size, 0)
})

t.test('an invalid value is reported with line and column', async t => {
  for (const [check, problem] of [
    ['{}', /gateway\.yaml:1:\d+.*either find or size/s],
    ['{ find: secrets, size: 9 }', /either find or size/],
    ['{ size: 9, action: mask }', /a size cannot be masked/],
    ['{ find: card, on: [request, response] }', /gateway\.yaml:1:\d+.*responses are not checked/s],
    ['{ find: [phones] }', /gateway\.yaml:1:\d+/],
    ['{ find: secrets, actoin: log }', /unknown key "actoin" in checks.a; did you mean "action"/],
  ] as const) {
    t.throws(() => load(t, `{ a: ${check} }`), { message: problem }, check)
  }
  t.throws(() => loadText(t, `checks: { pii: { find: email } }\n${LEAST}keys: [{ name: a, key: sk-0123456789abcdef, checks: [pi] }]\n`), {
    message: /no check "pi"; did you mean "pii"/,
  })
})
