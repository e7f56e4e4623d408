import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { Auth } from '../../../src/config/auth-types.ts'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const withAuth = (auth: string, place = 'url: "http://127.0.0.1:1"') => `${LEAST.replace('simulator: true', `${place}, auth: ${auth}`)}auth: open\n`
const authOf = (t: Test, auth: string, place?: string): Auth | null | undefined => load(t, withAuth(auth, place)).config.upstreams.get('demo')?.auth

const FORMS: readonly (readonly [what: string, auth: string, expected: object, place?: string])[] = [
  ['a bearer token', '{ bearer: sk-1 }', { kind: 'static', headers: ['authorization'], value: 'Bearer sk-1' }],
  ['a header', '{ header: X-Key, value: sk-1 }', { kind: 'static', headers: ['x-key'], value: 'sk-1' }],
  ['a command', '{ bearer: { command: [get, token] } }', { kind: 'command', headers: ['authorization'], prefix: 'Bearer ', command: ['get', 'token'], every: 900_000 }],
  ['a command with an interval', '{ header: x-key, value: { command: [get], every: 1s } }', { kind: 'command', prefix: '', every: 1_000 }],
  [
    'OAuth 2.0', '{ oauth2: { token_url: "https://login.example/t", client_id: a, client_secret: b } }',
    { kind: 'oauth2', headers: ['authorization'], tokenUrl: 'https://login.example/t', clientId: 'a', clientSecret: 'b', scope: null },
  ],
  ['Entra ID', '{ azure: { tenant: t, client_id: a, client_secret: b, authority: "https://login.example//" } }', { kind: 'azure', tenant: 't', clientId: 'a', clientSecret: 'b', authority: 'https://login.example' }],
  ['an identity of Azure', '{ azure: {} }', { kind: 'azure', tenant: null, clientId: null, clientSecret: null, authority: null }],
  ['AWS', '{ aws: { profile: p, role_arn: "arn:aws:iam::123456789012:role/gateway" } }', { kind: 'aws', region: 'eu-west-1', profile: 'p', roleArn: 'arn:aws:iam::123456789012:role/gateway' }, 'bedrock: { region: eu-west-1 }'],
  ['a pool', '{ pool: [{ bearer: sk-1 }, { header: x-key, value: sk-2 }, { bearer: sk-3 }] }', { kind: 'pool', headers: ['authorization', 'x-key'], pool: [{ value: 'Bearer sk-1' }, { value: 'sk-2' }, { value: 'Bearer sk-3' }] }],
  ["the client's own credential", '{ client: true }', { kind: 'client', headers: ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'] }],
]

for (const [what, auth, expected, place] of FORMS) {
  t.test(`an upstream authenticates by ${what}`, async t => t.match(authOf(t, auth, place), expected))
}

t.test('an upstream without auth has auth null', async t => {
  t.equal(load(t, LEAST).config.upstreams.get('demo')?.auth, null)
})

t.test('the path of a secret file is relative to the configuration file', async t => {
  const folder = t.testdir()
  writeFileSync(join(folder, 'secret'), 'sk-1\n')
  writeFileSync(join(folder, 'empty'), ' \n')
  t.strictSame(authOf(t, `{ bearer: { file: "${join(folder, 'secret')}" } }`), { kind: 'file', headers: ['authorization'], prefix: 'Bearer ', file: join(folder, 'secret') })
  t.match(authOf(t, '{ bearer: { file: missing } }'), { file: join(t.testdirName, 'missing') })
})

const PROBLEMS: readonly (readonly [what: string, auth: string, expected: object])[] = [
  ['two kinds of credential', '{ bearer: sk-1, aws: {} }', { severity: 'error', message: /^auth needs exactly one of/ }],
  ['no kind of credential', '{}', { severity: 'error' }],
  ['a header without a value', '{ header: x-key }', { severity: 'error', message: /^auth needs exactly one of/ }],
  ['client: false', '{ client: false }', { severity: 'error', message: 'this is true, or absent' }],
  ["a client's credential in a pool", '{ pool: [{ client: true }] }', { severity: 'error', message: /^unknown key "client"/ }],
  ['a pool in a pool', '{ pool: [{ pool: [{ bearer: sk-1 }] }] }', { severity: 'error' }],
  ['a file and a command', '{ bearer: { file: f, command: [c] } }', { severity: 'error', message: 'a secret comes from either a file or a command' }],
  ['an interval for a file', '{ bearer: { file: /etc/hostname, every: 1m } }', { severity: 'error', message: /^this is for a command/ }],
  ['a command with an interval below one second', '{ bearer: { command: [get], every: 999ms } }', { severity: 'error', message: 'upstreams.demo.auth.bearer.every must be at least 1s' }],
  ['a missing file', '{ bearer: { file: missing } }', { severity: 'warning', message: /^the file cannot be read \(ENOENT\); until it can, requests to this upstream fail/ }],
  ['the word Bearer in a bearer token', '{ bearer: "Bearer sk-1" }', { severity: 'warning', message: /already has it; remove it here/ }],
  ['a token server without TLS', '{ oauth2: { token_url: "http://login.example/t", client_id: a, client_secret: b } }', { severity: 'error', message: /not an https URL/ }],
  ['a token server with a password', '{ oauth2: { token_url: "https://u:p@login.example/t", client_id: a, client_secret: b } }', { severity: 'error', message: 'a URL must not contain credentials' }],
  ['a client secret without a tenant', '{ azure: { client_id: a, client_secret: b } }', { severity: 'error', message: 'a client secret needs tenant and client_id' }],
  ['a client secret without a client', '{ azure: { tenant: a, client_secret: b } }', { severity: 'error', message: 'a client secret needs tenant and client_id' }],
  ['AWS at an upstream that is not Bedrock', '{ aws: {} }', { severity: 'error', message: 'this is for an upstream at bedrock' }],
]

for (const [what, auth, expected] of PROBLEMS) {
  t.test(`auth with ${what} is reported`, async t => t.match(problems(t, withAuth(auth)).at(0), { line: 1, ...expected }))
}

t.test('a token server on localhost needs no TLS', async t => {
  t.strictSame(problems(t, withAuth('{ oauth2: { token_url: "http://127.0.0.1:9/t", client_id: a, client_secret: b } }')), [])
})

t.test('a role_arn that is not the ARN of a role is an error', async t => {
  const [problem] = problems(t, withAuth('{ aws: { role_arn: "arn:aws:iam::12:role/gateway" } }', 'bedrock: { region: eu-west-1 }'))
  t.match(problem, { severity: 'error', message: /^this is not the ARN of a role/ })
})
