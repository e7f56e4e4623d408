import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import t from 'tap'
import { Callers } from '../../src/auth/callers/callers.ts'
import type { Identity } from '../../src/auth/keyring.ts'
import { systemClock } from '../../src/base/clock.ts'
import { compileGlobs } from '../../src/config/glob.ts'
import { ROOT } from '../cli/command.ts'
import { completed } from '../docs/fragment.ts'
import { samplesOf } from '../docs/samples.ts'
import { makeKey, startTokenIssuer } from '../support/token-issuer.ts'
import { load } from './config/loading.ts'

/** Claims as the issuers write them, by the name in the recipe. */
const TOKENS: Readonly<Record<string, { readonly claims: JWTPayload, readonly refused: JWTPayload, readonly name: string, readonly group?: string }>> = {
  corp: {
    claims: { aud: 'model-gateway', email: 'alice@example.com', email_verified: true, department: 'ai', groups: ['x', 'platform-a'] },
    refused: { department: 'hr' }, name: 'corp:alice@example.com', group: 'research',
  },
  staff: {
    claims: {
      aud: ['model-gateway', 'account'], azp: 'cli', preferred_username: 'alice', sub: 'f5a0', typ: 'Bearer',
      groups: ['/all', '/platform/core'], realm_access: { roles: ['offline_access'] },
    },
    refused: { groups: ['/all'] }, name: 'staff:alice', group: 'research',
  },
  entra: {
    claims: { aud: '66666666-7777-8888-9999-000000000000', oid: 'a0-b1', tid: '1', ver: '2.0', roles: ['Gateway.Use'] },
    refused: { roles: [] }, name: 'entra:a0-b1', group: 'research',
  },
  okta: {
    claims: { aud: 'api://model-gateway', sub: 'alice@example.com', cid: '0oa1', groups: ['Everyone', 'gateway-users'] },
    refused: { groups: ['Everyone'] }, name: 'okta:alice@example.com', group: 'research',
  },
  cluster: {
    claims: {
      'aud': ['model-gateway'], 'sub': 'system:serviceaccount:team-a:worker',
      'kubernetes.io': { namespace: 'team-a', pod: { name: 'worker-1' }, serviceaccount: { name: 'worker' } },
    },
    refused: { 'kubernetes.io': { namespace: 'other' } }, name: 'cluster:system:serviceaccount:team-a:worker', group: 'research',
  },
  github: {
    claims: {
      aud: 'model-gateway', sub: 'repo:acme/app:ref:refs/heads/main', repository: 'acme/app', repository_owner: 'acme',
      repository_owner_id: '1234567', ref: 'refs/heads/main',
    },
    refused: { repository_owner_id: '7654321' }, name: 'github:acme/app',
  },
  google: {
    claims: { aud: 'model-gateway', sub: '1089', email: 'worker@my-project.iam.gserviceaccount.com', email_verified: true },
    refused: { email: 'worker@other.iam.gserviceaccount.com' }, name: 'google:worker@my-project.iam.gserviceaccount.com',
  },
}

const RSA = makeKey('one', 'RS256')
const samples = samplesOf(readFileSync(join(ROOT, 'docs/callers.md'), 'utf8')).filter(({ language }) => language === 'yaml')

t.test('each recipe of the documentation admits a token of its issuer, and refuses one of somebody else', async t => {
  const tried: string[] = []
  for (const { text } of samples) {
    const { config } = load(t, completed(text))
    const [entry] = config.callers
    if (entry === undefined) throw new Error(`no callers in ${text}`)
    const { claims, refused, name, group } = TOKENS[entry.name]!
    const issuer = await startTokenIssuer(t)
    issuer.keys = [RSA]
    const callers = new Callers([{ ...entry, issuer: issuer.issuer }], {
      clock: systemClock, groups: config.groups, compile: compileGlobs, isBlocked: () => false, onFailure: why => t.fail(why), onRecovered: () => {},
    })
    t.teardown(() => callers.stop(null))
    const find = async (token: string) => await callers.find(token, hash('sha256', token, 'base64'))
    const { key } = await find(await issuer.token(claims)) as Identity
    t.equal(key?.name, name)
    t.equal(key?.group, group)
    t.match(await find(await issuer.token({ ...claims, ...refused })), { status: 403 })
    tried.push(entry.name)
  }
  t.strictSame(tried.sort(), Object.keys(TOKENS).sort())
})
