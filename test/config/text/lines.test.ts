import t from 'tap'
import { configLines, lineOf } from '../../../src/config/text/lines.ts'

const lines = configLines(`# a comment
server:
  listen: 127.0.0.1:0
  tls:
    cert: server.crt
    key: "\${KEY}"
upstreams:
  "a.b": &shared { url: "https://a.example", auth: { bearer: x } }
  other:
    <<: *shared
    url: "https://b.example"
keys:
  - { name: a, key: x }
`)

t.test('`lineOf` returns the line of a key, or the line of the parent if the key is missing', async t => {
  t.equal(lineOf(lines, ['server', 'tls', 'cert']), 5)
  t.equal(lineOf(lines, ['server', 'tls', 'none']), 4)
  t.equal(lineOf(lines, ['server', 'listen']), 3)
  t.equal(lineOf(lines, ['upstreams', 'a.b', 'auth']), 8)
  t.equal(lineOf(lines, ['upstreams', 'other', 'url']), 11)
  t.equal(lineOf(lines, ['upstreams', 'other', 'auth']), 8, 'a key from a merge key has the line of the merged value')
  t.equal(lineOf(lines, ['keys', '0']), 12)
  t.equal(lineOf(lines, ['models', 'gpt-5']), null)
})
