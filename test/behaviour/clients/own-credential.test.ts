import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { KEY } from '../../support/gateway.ts'
import { messagesVendor } from '../../support/vendors/messages.ts'
import { responsesVendor } from '../../support/vendors/responses.ts'
import type { Vendor } from '../../support/vendors/vendor.ts'
import { CLAUDE_CODE } from './claude-code.ts'
import { CODEX } from './codex.ts'
import { holdSession, isMissing, type Client } from './command-line.ts'

const OWN = 'sk-ant-oat01-own-0123456789abcdef'
const ACCOUNT = '00000000-0000-4000-8000-00000000acc1'

/** The settings of docs/own-credential.md: each request has the client's own credential, and the key of the gateway goes nowhere. */
async function holdOwnSession(t: Test, client: Client, vendor: Vendor, expected: Record<string, string | RegExp>): Promise<void> {
  const requests = await holdSession(t, client, { ...vendor, settings: url => `url: "${url}", auth: { client: true }` })
  for (const { headers } of requests) {
    t.match(headers, expected)
    t.notMatch(JSON.stringify(headers), KEY)
  }
}

t.test('Claude Code', { skip: isMissing('claude') }, async t => {
  const client = (own: Record<string, string>): Client => ({
    ...CLAUDE_CODE,
    env: place => {
      const { ANTHROPIC_API_KEY: _, ...others } = CLAUDE_CODE.env(place)
      return { ...others, ANTHROPIC_CUSTOM_HEADERS: `x-gateway-key: ${KEY}`, ...own }
    },
  })
  t.test('with an API key', t => holdOwnSession(t, client({ ANTHROPIC_API_KEY: OWN }), messagesVendor, { 'x-api-key': OWN }))
  t.test('with a subscription', t => holdOwnSession(t, client({ CLAUDE_CODE_OAUTH_TOKEN: OWN }), messagesVendor, {
    'authorization': `Bearer ${OWN}`, 'anthropic-beta': /oauth-/,
  }))
})

/** A part of a token that is signed by nobody: Codex only reads it. */
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

t.test('Codex', { skip: isMissing('codex') }, async t => {
  const header = ['-c', 'model_providers.gateway.env_http_headers={ "x-gateway-key" = "GATEWAY_API_KEY" }']
  t.test('with an API key', t => holdOwnSession(t, {
    ...CODEX,
    args: place => [...header, ...CODEX.args(place).map(arg => arg.replace('"GATEWAY_API_KEY"', '"OPENAI_API_KEY"'))],
    env: () => ({ GATEWAY_API_KEY: KEY, OPENAI_API_KEY: OWN }),
  }, responsesVendor, { authorization: `Bearer ${OWN}` }))

  t.test('with a subscription', async t => {
    const claims = { email: 'a@example.com', exp: 4_000_000_000, 'https://api.openai.com/auth': { chatgpt_account_id: ACCOUNT, chatgpt_plan_type: 'pro', chatgpt_user_id: 'u' } }
    const token = `${part({ alg: 'RS256' })}.${part(claims)}.${part({ none: true })}`
    await holdOwnSession(t, {
      ...CODEX,
      args: place => [
        // What Codex asks about the account does not go through the gateway.
        ...header, '-c', 'model_providers.gateway.requires_openai_auth=true', '-c', 'chatgpt_base_url="http://127.0.0.1:9/backend-api/"',
        ...CODEX.args(place).flatMap(arg => arg.includes('env_key') ? ['analytics.enabled=false'] : [arg]),
      ],
      env: () => ({ GATEWAY_API_KEY: KEY }),
      prepare: ({ home }) => {
        mkdirSync(join(home, '.codex'))
        writeFileSync(join(home, '.codex', 'auth.json'), JSON.stringify({
          auth_mode: 'chatgpt', OPENAI_API_KEY: null, last_refresh: new Date().toISOString(),
          tokens: { id_token: token, access_token: token, refresh_token: 'refresh', account_id: ACCOUNT },
        }))
      },
    }, responsesVendor, { 'authorization': `Bearer ${token}`, 'chatgpt-account-id': ACCOUNT })
  })
})
