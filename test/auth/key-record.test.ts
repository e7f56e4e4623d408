import t from 'tap'
import { limitsToJson, oldSecretsAfter, propertiesOf, readRecord, summaryOf } from '../../src/auth/key-record.ts'
import type { KeyRow } from '../../src/auth/key-record.ts'
import type { Key, Limits } from '../../src/config/key-types.ts'

const DIGEST = Buffer.alloc(32, 7)
const NONE = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
const LIMITS: Limits = { ...NONE, requestsPerMinute: 60, budget: { usd: '0.10', per: 'month' }, models: new Map([['gpt-*', { ...NONE, tokensPerMinute: 5, concurrent: 0 }]]) }
const STORED = '{"requests_per_minute":60,"budget":{"usd":"0.10","per":"month"},"models":{"gpt-*":{"tokens_per_minute":5,"concurrent":0}}}'

const row = (more: Readonly<Record<string, KeyRow[string]>> = {}): KeyRow => ({ id: 3, name: 'team', digest: new Uint8Array(DIGEST), created_at: 1000, ...more })

t.test('a row is read as a frozen key without members for null columns', async t => {
  const { id, key, createdAt, revokedAt } = readRecord(row())
  t.strictSame([id, createdAt, revokedAt], [3, 1000, null])
  t.strictSame(key, { name: 'team', digest: DIGEST, models: null, limits: null })
  t.ok(Buffer.isBuffer(key.digest) && Object.isFrozen(key))
  const full = readRecord(row({
    models: '["gpt-*"]', limits: STORED, group_name: 'g', owner: 'o', note: 'n', expires_at: 5000, prefix: 'mgw_abcd', revoked_at: 4000,
    old_secrets: `[["${'0a'.repeat(32)}",6000]]`,
  }))
  t.equal(full.revokedAt, 4000)
  t.strictSame(full.key, {
    name: 'team', digest: DIGEST, models: ['gpt-*'], limits: LIMITS, group: 'g', owner: 'o', note: 'n', expiresAt: 5000, prefix: 'mgw_abcd',
    oldSecrets: [{ digest: Buffer.alloc(32, 10), validUntil: 6000 }],
  })
})

const BROKEN: readonly (readonly [what: string, more: Readonly<Record<string, KeyRow[string]>>, message: RegExp])[] = [
  ['a name that is no text', { name: 5 }, /^a row of the store is not that of a key$/],
  ['no digest', { digest: null }, /^a row of the store is not that of a key$/],
  ['no time', { created_at: 'now' }, /^a row of the store is not that of a key$/],
  ['models that are no JSON', { models: '[' }, /^the key "team" cannot be read: /],
  ['models that are no list', { models: '{}' }, /its models are no list of globs/],
  ['a model that is no text', { models: '["a",1]' }, /its models are no list of globs/],
  ['limits that are a list', { limits: '[]' }, /its limits cannot be read/],
  ['limits of models that are a list', { limits: '{"models":[]}' }, /its limits of models cannot be read/],
  ['limits of a model that are a number', { limits: '{"models":{"m":1}}' }, /its limits of m cannot be read/],
  ['an unknown limit', { limits: '{"requests_per_day":1}' }, /it has a limit of an unknown kind, "requests_per_day"/],
  ['an unknown limit of a model', { limits: '{"models":{"m":{"models":{}}}}' }, /unknown kind, "models"/],
  ['a limit that is no whole number', { limits: '{"concurrent":1.5}' }, /one of its limits is no whole number/],
  ['a negative limit', { limits: '{"tokens_per_minute":-1}' }, /one of its limits is no whole number/],
  ['a limit of null', { limits: '{"concurrent":null}' }, /one of its limits is no whole number/],
  ['an amount that is a number', { limits: '{"budget":{"usd":1,"per":"day"}}' }, /its budget is no amount of USD/],
  ['an amount with an exponent', { limits: '{"budget":{"usd":"1e9","per":"day"}}' }, /its budget is no amount of USD/],
  ['a very long amount', { limits: `{"budget":{"usd":"${'1'.repeat(65)}","per":"day"}}` }, /its budget is no amount of USD/],
  ['an unknown period', { limits: '{"budget":{"usd":"1","per":"week"}}' }, /its budget is no amount of USD/],
  ['a replaced secret that is too short', { old_secrets: '[["0a",1]]' }, /its replaced secrets cannot be read/],
  ['a replaced secret without a time', { old_secrets: `[["${'0a'.repeat(32)}"]]` }, /its replaced secrets cannot be read/],
]

for (const [what, more, message] of BROKEN) {
  t.test(`a row with ${what} is refused`, async t => t.throws(() => readRecord(row(more)), { code: 'row', message }))
}

t.test('limits are stored with the names of gateway.yaml, without absent limits', async t => {
  t.equal(JSON.stringify(limitsToJson(LIMITS)), STORED)
  t.strictSame(limitsToJson({ ...NONE, models: new Map() }), {})
})

t.test('a change stores only the given members; a member that is null is removed', async t => {
  t.strictSame(propertiesOf({}), {})
  t.strictSame(propertiesOf({ models: ['a'], limits: LIMITS, group: 'g', owner: 'o', note: 'n', expiresAt: 5, prefix: 'p' }), {
    models: '["a"]', limits: STORED, group_name: 'g', owner: 'o', note: 'n', expires_at: 5, prefix: 'p',
  })
  t.strictSame(propertiesOf({ models: null, limits: null, group: null, owner: null, note: null, expiresAt: null }), {
    models: null, limits: null, group_name: null, owner: null, note: null, expires_at: null,
  })
})

t.test('a rotation keeps the latest sixteen old secrets that have not expired', async t => {
  const key: Key = { name: 'team', digest: DIGEST, models: null, limits: null }
  const hex = DIGEST.toString('hex')
  t.equal(oldSecretsAfter(key, 100, 99), `[["${hex}",100]]`)
  t.equal(oldSecretsAfter(key, 100, 100), null)
  const old = (n: number, validUntil = 500) => ({ digest: Buffer.alloc(32, n), validUntil })
  const kept = JSON.parse(oldSecretsAfter({ ...key, oldSecrets: [old(1, 50), ...Array.from({ length: 16 }, (_, n) => old(100 + n))] }, 200, 60) ?? '') as [string, number][]
  t.equal(kept.length, 16)
  t.strictSame(kept[0], [Buffer.alloc(32, 101).toString('hex'), 500])
  t.strictSame(kept.at(-1), [hex, 200])
})

t.test('the summary of a key has numbers, even if PostgreSQL sends numbers as text', async t => {
  t.strictSame(summaryOf({ id: '12', name: 'team', digest: new Uint8Array(DIGEST), revoked_at: '500' }), { id: 12, name: 'team', digest: DIGEST, revokedAt: 500 })
  t.equal(summaryOf({ id: 1, name: 'a', digest: DIGEST, revoked_at: null }).revokedAt, null)
})
