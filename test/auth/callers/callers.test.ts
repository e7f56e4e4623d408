import { createHash } from 'node:crypto'
import { SignJWT, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import { callerDigest } from '../../../src/auth/callers/caller-of.ts'
import { Callers, type CallersOptions } from '../../../src/auth/callers/callers.ts'
import { GatewayError } from '../../../src/base/errors.ts'
import type { Identity } from '../../../src/auth/keyring.ts'
import type { CallerIssuer } from '../../../src/config/caller-types.ts'
import type { Group } from '../../../src/config/key-types.ts'
import { compileGlobs } from '../../../src/config/glob.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { makeKey, startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'

const HOUR = 3_600_000
const RULES = { name: 'research', isGroup: true as const, parent: null, models: ['gpt-*'], limits: null, members: ['research'] }
const GROUPS = new Map<string, Group>([['research', { ...RULES, chain: [RULES] }]])

function configOf(issuer: string, changes: Partial<CallerIssuer> = {}): CallerIssuer {
  return {
    name: 'corp', issuer, audience: ['gateway'], jwks: null, keys: 0, jwksGrace: 24 * HOUR, algorithms: ['ES256', 'RS256', 'EdDSA'],
    caller: 'sub', require: new Map(), groups: null, limits: null, ...changes,
  }
}

interface Setup {
  readonly clock: FakeClock
  readonly issuer: TokenIssuer
  readonly callers: Callers
  readonly failures: string[]
  readonly blocked: Set<string>
  readonly options: CallersOptions
  find(token: string, callers?: Callers): Promise<Identity | GatewayError | null>
  /** The name of the caller, or the code of the refusal. */
  result(token: string, callers?: Callers): Promise<string | null>
}

async function setUp(t: Test, changes: Partial<CallerIssuer> = {}, more: readonly ((issuer: string) => CallerIssuer)[] = []): Promise<Setup> {
  const clock = new FakeClock('2026-06-01T00:00:00Z')
  const issuer = await startTokenIssuer(t, { now: () => clock.wall() })
  const failures: string[] = []
  const blocked = new Set<string>()
  const options: CallersOptions = {
    clock, groups: GROUPS, compile: compileGlobs,
    isBlocked: digest => blocked.has(digest.toString('hex')),
    onFailure: (_, why) => failures.push(why),
    onRecovered: () => failures.push('recovered'),
  }
  const callers = new Callers([configOf(issuer.issuer, changes), ...more.map(make => make(issuer.issuer))], options)
  t.teardown(() => callers.stop(null))
  const find = async (token: string, asked = callers) => await asked.find(token, digestOf(token))
  const result = async (token: string, asked = callers) => {
    const found = await find(token, asked)
    return found instanceof GatewayError ? found.code : found?.key?.name ?? null
  }
  return { clock, issuer, callers, failures, blocked, options, find, result }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64')
}

t.test('a token is verified once, and then remembered until it ends', async t => {
  const { clock, issuer, callers, result } = await setUp(t)
  const token = await issuer.token()
  t.ok(callers.find(token, digestOf(token)) instanceof Promise)
  t.equal(await result(token), 'corp:alice')
  const published = issuer.keys
  issuer.keys = []
  const again = callers.find(token, digestOf(token))
  t.notOk(again instanceof Promise, 'no signature is checked again')
  t.equal((again as Identity).key?.name, 'corp:alice')
  issuer.keys = published
  clock.advance(HOUR + 29_000)
  t.equal(await result(token), 'corp:alice', '30 s leeway')
  clock.advance(1_000)
  t.equal(await result(token), 'token_expired')
})

t.test('each reason has its code', async t => {
  const { clock, issuer, result } = await setUp(t, { require: new Map([['department', ['ai', 'ml-*']]]), groups: { claim: 'realm.groups', map: new Map([['/platform/*', 'research']]), default: null } })
  const seconds = clock.wall() / 1_000
  const good = { department: ['x', 'ml-1'], realm: { groups: ['/other', '/platform/a'] } }
  const key = issuer.keys[0]!
  const sign = (header: object, claims: object = good) =>
    new SignJWT({ iss: issuer.issuer, aud: 'gateway', sub: 'alice', exp: seconds + 60, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'first', ...header })
  const secret = key.publicKey.export({ type: 'spki', format: 'pem' })
  const [head, body] = (await issuer.token(good)).split('.')
  const cases: [string, string | null, string][] = [
    ['good', 'corp:alice', await issuer.token(good)],
    ['a list of audiences', 'corp:alice', await issuer.token({ ...good, aud: ['x', 'gateway'] })],
    ['10 kB', 'corp:alice', await issuer.token({ ...good, more: 'x'.repeat(10_000) })],
    ['nested names with dots', 'token_group', await issuer.token({ ...good, realm: {}, 'realm.groups': 'x' })],
    ['not expired within the leeway', 'corp:alice', await issuer.token({ ...good, exp: seconds - 29 })],
    ['expired', 'token_expired', await issuer.token({ ...good, exp: seconds - 30 })],
    ['valid within the leeway', 'corp:alice', await issuer.token({ ...good, nbf: seconds + 30 })],
    ['not yet valid', 'token_not_yet_valid', await issuer.token({ ...good, nbf: seconds + 31 })],
    ['another audience', 'token_audience', await issuer.token({ ...good, aud: 'x' })],
    ['no audience', 'token_audience', await sign({}, { ...good, aud: undefined }).sign(key.privateKey)],
    ['another issuer', 'token_issuer', await issuer.token({ ...good, iss: 'https://example.com' })],
    ['no end', 'token_claims', await issuer.token({ ...good, exp: undefined as unknown as number })],
    ['an end that is no number', 'token_claims', await sign({}, { ...good, exp: '9999999999' }).sign(key.privateKey)],
    ['no claim', 'token_claims', await issuer.token({ ...good, department: 'x' })],
    ['no name', 'token_claims', await issuer.token({ ...good, sub: '' })],
    ['a name with a line break', 'token_claims', await issuer.token({ ...good, sub: 'a\nb' })],
    ['a name of another type', 'token_claims', await issuer.token({ ...good, sub: ['alice'] as unknown as string })],
    ['no group', 'token_group', await issuer.token({ ...good, realm: { groups: ['/other'] } })],
    ['none', 'token_signature', `${new UnsecuredJWT({ iss: issuer.issuer, aud: 'gateway', sub: 'alice', exp: seconds + 60, ...good }).encode()}`],
    ['HS256 with the public key', 'token_signature', await sign({ alg: 'HS256' }).sign(Buffer.from(secret))],
    ['a key of somebody else', 'token_signature', await issuer.token(good, { ...makeKey('first') })],
    ['an unknown critical header', 'token_signature', await sign({ crit: ['x'], x: 1 }).sign(key.privateKey, { crit: { x: true } })],
    ['a cut signature', 'token_signature', `${head}.${body}.AAAA`],
    ['more than 16 kB', 'token_signature', await issuer.token({ ...good, more: 'x'.repeat(16_000) })],
    ['no token', null, 'eyJ.eyJ.x'],
    ['a key with dots', null, 'sk-a.b.c'],
  ]
  const wrong: string[] = []
  for (const [what, expected, token] of cases) {
    const found = await result(token)
    if (found !== expected) wrong.push(`${what}: ${found}, not ${expected}`)
  }
  t.strictSame(wrong, [])
})

t.test('a refusal is remembered for a short time and says nothing of the configuration', async t => {
  const { clock, issuer, callers, find } = await setUp(t, { require: new Map([['department', ['ai']]]) })
  const token = await issuer.token()
  const refusal = await find(token) as GatewayError
  t.notMatch(refusal.message, /department|corp|ai\b/)
  t.match((refusal.cause as Error).message, /corp: the claim department/)
  t.equal(callers.find(token, digestOf(token)), refusal, 'no signature is checked again')
  clock.advance(5_000)
  t.ok(callers.find(token, digestOf(token)) instanceof Promise)
  await find(token)
})

t.test('groups, limits and names', async t => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: null, concurrent: null, budget: null, models: new Map() }
  const { issuer, find, result } = await setUp(t, { caller: 'email', limits, groups: { claim: 'groups', map: new Map(), default: 'research' } })
  const identity = await find(await issuer.token({ email: 'alice@example.com' })) as Identity
  t.match(identity.key, { name: 'corp:alice@example.com', group: 'research', limits })
  t.strictSame([identity.allows('gpt-5'), identity.allows('other')], [true, false])
  t.strictSame(identity.key?.digest, callerDigest('corp:alice@example.com'))
  t.equal(await result(await issuer.token({ email: 'alice@example.com', email_verified: false })), 'token_claims')
})

t.test('a remembered token is refused within 15 minutes after the issuer has withdrawn its key', async t => {
  const { clock, issuer, callers, result } = await setUp(t)
  const token = await issuer.token({ exp: Math.floor(clock.wall() / 1_000) + 365 * 24 * 3_600 })
  t.equal(await result(token), 'corp:alice')
  issuer.keys = [makeKey('second')]
  clock.advance(15 * 60_000 - 1)
  t.notOk(callers.find(token, digestOf(token)) instanceof Promise)
  // The issuer's keys are read again by then.
  t.equal(await result(await issuer.token({ jti: 'new' })), 'corp:alice')
  clock.advance(1)
  t.equal(await result(token), 'token_signature')
})

t.test('an unverified address counts neither for require nor for groups', async t => {
  const require = new Map([['email', ['*@example.com']]])
  const { issuer, result } = await setUp(t, { require })
  t.equal(await result(await issuer.token({ email: 'eve@example.com', email_verified: false })), 'token_claims')
  t.equal(await result(await issuer.token({ email: 'eve@example.com', email_verified: 'false' })), 'token_claims')
  t.equal(await result(await issuer.token({ email: 'alice@example.com', email_verified: true })), 'corp:alice')
  const groups = { claim: 'email', map: new Map([['*@example.com', 'research']]), default: null }
  const grouped = await setUp(t, { groups })
  t.equal(await grouped.result(await grouped.issuer.token({ email: 'eve@example.com', email_verified: false })), 'token_group')
})

t.test('an issuer without keys does not take the room of other issuers', async t => {
  const other = await startTokenIssuer(t, { now: () => Date.parse('2026-06-01T00:00:00Z') })
  const { issuer, callers, result } = await setUp(t, {}, [() => ({ ...configOf(other.issuer), name: 'other' })])
  const held: (() => void)[] = []
  issuer.fault = res => { held.push(() => res.writeHead(500).end()) }
  const flood = await Promise.all(Array.from({ length: 300 }, (_, jti) => issuer.token({ jti: `${jti}` })))
  const found = flood.map(token => callers.find(token, digestOf(token)))
  t.equal(found.filter(each => each instanceof GatewayError && each.code === 'overloaded').length, 50)
  t.equal(await result(await other.token()), 'other:alice')
  for (const release of held) release()
  issuer.fault = null
  await Promise.all(found)
})

t.test('a blocked caller is refused, also with a remembered token', async t => {
  const { issuer, blocked, result } = await setUp(t)
  const token = await issuer.token()
  t.equal(await result(token), 'corp:alice')
  blocked.add(callerDigest('corp:alice').toString('hex'))
  t.equal(await result(token), 'key_revoked')
  t.equal(await result(await issuer.token({ jti: '2' })), 'key_revoked')
  blocked.clear()
  t.equal(await result(token), 'corp:alice')
})

t.test('entries of the same issuer: the first that the token fits, or the refusal that came furthest', async t => {
  const { issuer, result } = await setUp(t, { audience: ['other'] }, [
    url => configOf(url, { name: 'second', require: new Map([['department', ['ai']]]) }),
  ])
  t.equal(await result(await issuer.token({ department: 'ai' })), 'second:alice')
  t.equal(await result(await issuer.token({ aud: 'other' })), 'corp:alice')
  t.equal(await result(await issuer.token()), 'token_claims')
  t.equal(await result(await issuer.token({ aud: 'x' })), 'token_audience')
})

t.test('a new key of the issuer is read once for all tokens, at most every 30 s', async t => {
  const { clock, issuer, result } = await setUp(t)
  t.equal(await result(await issuer.token()), 'corp:alice')
  const reads = () => issuer.requests.filter(path => path === '/jwks').length
  t.equal(reads(), 1)
  issuer.keys = [...issuer.keys, makeKey('second', 'RS256')]
  const rotated = await Promise.all(Array.from({ length: 20 }, (_, jti) => issuer.token({ jti: `${jti}` })))
  t.strictSame([...new Set(await Promise.all(rotated.map(token => result(token))))], ['corp:alice'])
  t.equal(reads(), 2)
  const flood = await Promise.all(Array.from({ length: 200 }, (_, n) => issuer.token({ jti: `${n}` }, { ...makeKey('x'), kid: `made-up-${n}` })))
  t.strictSame([...new Set(await Promise.all(flood.map(token => result(token))))], ['token_keys_unavailable'], 'the next read may bring the key: try again')
  t.equal(reads(), 2)
  clock.advance(30_000)
  issuer.keys = [...issuer.keys, makeKey('third')]
  const next = await issuer.token({ jti: 'third' }, issuer.keys.at(-1))
  t.equal(await result(next), 'corp:alice')
  t.equal(await result(flood[0] ?? ''), 'token_keys_unavailable')
  await Promise.all(flood.map(token => result(token)))
  t.equal(reads(), 3)
  clock.advance(30_000)
  t.equal(await result(flood[0] ?? ''), 'token_signature', 'the issuer does not have it')
})

t.test('keys are read in the background, and outdated ones are used for jwks_grace', async t => {
  const { clock, issuer, callers, failures, result } = await setUp(t, { jwksGrace: 2 * HOUR })
  callers.start()
  const long = { exp: clock.wall() / 1_000 + 10 * 3_600 }
  t.equal(await result(await issuer.token(long)), 'corp:alice')
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  issuer.fault = res => { resolve(); res.writeHead(500).end() }
  clock.advance(8 * 60_000)
  await asked
  t.equal(await result(await issuer.token({ ...long, jti: '2' })), 'corp:alice')
  clock.advance(10 * 60_000 + 2 * HOUR - 8 * 60_000 - 1)
  t.equal(await result(await issuer.token({ ...long, jti: '3' })), 'corp:alice')
  clock.advance(1)
  t.equal(await result(await issuer.token({ ...long, jti: '4' })), 'token_keys_unavailable')
  t.match(failures[0], /responded 500/)
  issuer.fault = null
  clock.advance(60_000)
  t.equal(await result(await issuer.token({ ...long, jti: '5' })), 'corp:alice')
  t.equal(failures.at(-1), 'recovered')
})

t.test('an issuer that is silent delays only tokens with an unknown key', async t => {
  const { issuer, result } = await setUp(t)
  t.equal(await result(await issuer.token()), 'corp:alice')
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  issuer.fault = () => resolve()
  const known = await issuer.token({ jti: '2' })
  const unknown = result(await issuer.token({}, makeKey('unknown')))
  await asked
  t.equal(await result(known), 'corp:alice')
  issuer.fault = null
  t.ok(unknown instanceof Promise)
})

t.test('what an issuer may not send', async t => {
  const { clock, issuer, failures, result } = await setUp(t)
  const json = (body: unknown) => (res: { end(text: string): void }) => res.end(JSON.stringify(body))
  const cases: [RegExp, TokenIssuer['fault']][] = [
    [/more than 512 kB/, res => {
      const chunk = Buffer.alloc(64 * 1024, ' ')
      const write = (left: number): void => { if (left > 0 && !res.destroyed) res.write(chunk, () => write(left - 1)) }
      write(800)
    }],
    [/is of another issuer/, json({ issuer: 'https://example.com', jwks_uri: issuer.jwks })],
    [/has no https URL/, json({ issuer: issuer.issuer, jwks_uri: 'http://example.com/jwks' })],
    [/no JSON/, res => res.end('<html>')],
    [/cannot be read/, res => res.writeHead(302, { location: issuer.jwks }).end()],
    [/cannot be read/, res => res.destroy()],
    [/no list of keys/, (res, path) => json(path === '/jwks' ? { keys: 'x' } : { issuer: issuer.issuer, jwks_uri: issuer.jwks })(res)],
  ]
  for (const [why, fault] of cases) {
    issuer.fault = fault
    t.equal(await result(await issuer.token({ jti: String(why) })), 'token_keys_unavailable')
    t.match(failures.at(-1), why)
    issuer.fault = null
    clock.advance(60_000)
    t.equal(await result(await issuer.token({ jti: `after ${why}` })), 'corp:alice')
    clock.advance(26 * HOUR)
  }
})

t.test('a token without kid is tried with each key that fits', async t => {
  const { issuer, result } = await setUp(t)
  issuer.keys = [makeKey('one'), makeKey('two'), makeKey('three', 'EdDSA')]
  t.equal(await result(await issuer.token({}, { ...issuer.keys[1]!, kid: '' })), 'corp:alice')
  t.equal(await result(await issuer.token({ jti: '2' }, { ...issuer.keys[2]!, kid: '' })), 'corp:alice')
  t.equal(await result(await issuer.token({ jti: '3' }, { ...makeKey('x'), kid: '' })), 'token_signature')
})

t.test('after a reload, tokens of unchanged issuers stay remembered, with the new limits', async t => {
  const { issuer, callers, options, result } = await setUp(t)
  const token = await issuer.token()
  t.equal(await result(token), 'corp:alice')
  const limits = { requestsPerMinute: 5, tokensPerMinute: null, concurrent: null, budget: null, models: new Map() }
  const limited = new Callers([configOf(issuer.issuer, { limits })], options, callers)
  callers.stop(limited)
  const found = limited.find(token, digestOf(token)) as Identity
  t.equal(found.key?.limits, limits)
  const changed = new Callers([configOf(issuer.issuer, { require: new Map([['department', ['ai']]]) })], options, limited)
  t.ok(changed.find(token, digestOf(token)) instanceof Promise)
  t.equal(await result(token, changed), 'token_claims')
  t.equal(issuer.requests.filter(path => path === '/jwks').length, 1, 'the keys stay')
  limited.stop(null)
})
