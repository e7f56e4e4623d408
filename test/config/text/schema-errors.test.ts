import t from 'tap'
import { toPath } from '../../../src/config/text/schema-errors.ts'
import { LEAST, problems } from '../../behaviour/config/loading.ts'

const CASES: readonly (readonly [text: string, message: string | RegExp, column?: number])[] = [
  ['servre: {}', 'unknown key "servre"; did you mean "server"?', 1],
  ['server: { lisen: ":80" }', 'unknown key "lisen" in server; did you mean "listen"?', 11],
  ['retries: 3', 'unknown key "retries"; it belongs under routes[]', 1],
  ['server: { zzz: 1 }', /^unknown key "zzz" in server; known here: listen, /],
  ['server: { sk-0123456789: 1 }', /^unknown key in server; known here: /],
  ['server: { workers: "2" }', 'server.workers must be a whole number from 1 to 256, or auto'],
  ['server: { idle: soon }', 'server.idle must be a duration such as 250ms, 10s, 30m, 1h or 400d', 17],
  ['server: { reuse_port: 1 }', 'server.reuse_port must be true or false'],
  ['server: { reuse_port: "true" }', 'server.reuse_port must be true or false; remove the quotes'],
  ['server: [1]', 'server must be a map of "name: value" lines'],
  ['server: { trusted_proxies: 10.0.0.1 }', 'server.trusted_proxies must be a list'],
  ['server: { idle: }', 'there is no value here; give one, or remove the line'],
  ['server: { idle: "" }', 'server.idle must not be empty'],
  ['ledger: { file: true }', 'ledger.file must be a file name; put quotes round it'],
  ['ledger: { file: 5 }', 'ledger.file must be a file name; put quotes round it'],
  ['ledger: { file: [] }', 'ledger.file must be a file name'],
  ['server: { tls: { cert: a.pem } }', 'server.tls needs "key"'],
  ['server: { max_in_flight: 0 }', 'server.max_in_flight must be >= 1'],
  ['auth: opne', /^auth must be keys or open; did you mean "open"\?/],
  ['log: { level: "${NONE:-loud}" }', /which the value from the environment is not$/],
]

for (const [text, message, column] of CASES) {
  t.test(`a violation of the schema says what to change: ${text}`, async t => {
    const errors = problems(t, `${LEAST}${text}\n`).filter(({ severity }) => severity === 'error')
    t.match(errors, [{ line: 3, message, ...column !== undefined && { column } }])
  })
}

t.test('a file without the required keys is refused', async t => {
  t.match(problems(t, 'auth: open\n'), [{ message: 'the file needs "upstreams"' }, { message: 'the file needs "routes"' }])
  t.match(problems(t, '[]\n'), [{ message: /^the file must be a map/ }])
})

t.test('the steps of a JSON pointer are unescaped', async t => {
  t.strictSame(toPath(''), [])
  t.strictSame(toPath('/a~1b/0/~0~01'), ['a/b', '0', '~~1'])
  t.strictSame(toPath('/'), [''])
})
