import t from 'tap'
import { withoutCredentials } from '../../../src/policy/hooks/body-credentials.ts'

t.test('a body without credentials stays as it is', t => {
  const body = Buffer.from('{ "model": "m", "n": 12345678901234567890, "tools": [{ "name": "token", "parameters": { "properties": { "token": {} } } }] }')
  t.equal(withoutCredentials(body), body)
  t.equal(withoutCredentials(Buffer.from('[1]')).toString(), '[1]')
  t.end()
})

t.test('credentials of tools and MCP servers are masked', t => {
  const body = {
    tools: [{ type: 'mcp', server_url: 'https://x', authorization: 'sk-1', headers: { Authorization: 'Bearer sk-2', 'x-a': 'sk-3' } }],
    mcp_servers: [{ type: 'url', authorization_token: 'sk-4', tool_configuration: { api_key: 'sk-5' } }],
  }
  const escaped = JSON.stringify(body).replace('"authorization"', '"\\u0061uthorization"')
  const masked = withoutCredentials(Buffer.from(escaped)).toString()
  t.notMatch(masked, /sk-\d/)
  t.match(JSON.parse(masked), { tools: [{ server_url: 'https://x', authorization: '[credential]' }] })
  t.end()
})

t.test('a body with too many values is left out', t => {
  t.equal(withoutCredentials(Buffer.from(`{"tools":[${'{},'.repeat(200_000)}{}]}`)).toString(), 'null')
  t.end()
})
