import t from 'tap'
import type { FindKind } from '../../../src/config/check-types.ts'
import { CheckSet } from '../../../src/policy/checks/check-set.ts'
import { Marks } from '../../../src/policy/checks/marks.ts'

const KINDS: readonly FindKind[] = ['secrets', 'email', 'card', 'iban', 'phone', 'ssn', 'ip']

function checkOf(find: readonly FindKind[]) {
  const set = new CheckSet(new Map([['x', { name: 'x', find, size: null, action: 'mask', all: true }]]))
  const [check] = set.of({ route: { checks: [] }, key: null, groups: [] })
  if (check === undefined) throw new Error('a check for all applies to each request')
  return check
}

function mask(text: string, ...find: FindKind[]): string {
  return new Marks().mask(text, checkOf(find).find(text))
}

const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEpAIBAAKCAQEA\n'.repeat(20)}-----END RSA PRIVATE KEY-----`

const FOUND: readonly (readonly [FindKind, string, string])[] = [
  ['secrets', `key=sk-proj-${'a1'.repeat(12)}, done`, 'key=[SECRET_1], done'],
  ['secrets', 'AKIAIOSFODNN7EXAMPLE', '[SECRET_1]'],
  ['secrets', `a ghp_${'x'.repeat(36)}.`, 'a [SECRET_1].'],
  ['secrets', `Bearer eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`, 'Bearer [SECRET_1]'],
  ['secrets', `x ${PEM} y`, 'x [SECRET_1] y'],
  ['secrets', `mgw_${'0'.repeat(38)}`, '[SECRET_1]'],
  ['email', 'write to ada.lovelace+x@mail.example.com.', 'write to [EMAIL_1].'],
  ['email', 'jörg@münchen.de, <a@b.org>', '[EMAIL_1], <[EMAIL_2]>'],
  ['card', 'pay 4111 1111 1111 1111 now', 'pay [CARD_1] now'],
  ['card', '3 5500-0000-0000-0004 7, 378282246310005', '3 [CARD_1] 7, [CARD_2]'],
  ['iban', 'IBAN DE89 3704 0044 0532 0130 00, ok', 'IBAN [IBAN_1], ok'],
  ['iban', 'gb82WEST12345698765432', '[IBAN_1]'],
  ['phone', 'call +49 (0)30 1234567 or (212) 555-0123 or 212-555-0123', 'call [PHONE_1] or [PHONE_2] or [PHONE_3]'],
  ['ssn', 'ssn 123-45-6789.', 'ssn [SSN_1].'],
  ['ip', '10.0.0.1:80, 2001:db8::1 and ::1.', '[IP_1]:80, [IP_2] and [IP_3].'],
]

t.test('what a check finds is masked, and nothing beside it', async t => {
  for (const [kind, text, masked] of FOUND) t.equal(mask(text, kind), masked, text)
})

t.test('what only looks like it stays', async t => {
  for (const [kind, text] of [
    ['secrets', 'ask-me-anything-about-the-whole-thing, sk-learn, disk-abcdefghijklmnopqrstuvwxyz'],
    ['email', 'user@localhost, @handle, a @ b.de, 3@4'],
    ['card', '4111 1111 1111 1112, 0.4111111111111111, a4111111111111111, 1234567890123'],
    ['iban', 'DE89 3704 0044 0532 0130 01, XX89370400440532013000, DE893704004405320130001'],
    ['phone', '1+1=2, 2026-11-28, 12345678, +12'],
    ['ssn', '000-12-3456, 666-12-3456, 123-45-67890, 123-456789'],
    ['ip', '1.2.3, 256.1.1.1, 12:30:45, a::b, std::vector, 1.2.3.4.5'],
  ] as const) t.equal(mask(text, kind), text)
})

t.test('the same value has the same mark in all texts, also for another check', async t => {
  const marks = new Marks()
  const find = (text: string) => checkOf(['email']).find(text)
  t.equal(marks.mask('a@b.de, c@d.de', find('a@b.de, c@d.de')), '[EMAIL_1], [EMAIL_2]')
  t.equal(marks.mask('c@d.de', find('c@d.de')), '[EMAIL_2]')
})

t.test('tool arguments stay JSON', async t => {
  t.equal(mask('{"card": 4111111111111111, "x": [378282246310005]}', 'card'), '{"card": "[CARD_1]", "x": ["[CARD_2]"]}')
  t.equal(mask('{"card":"4111111111111111"}', 'card'), '{"card":"[CARD_1]"}')
})

t.test('of overlapping matches the first is masked, or the longest', async t => {
  t.equal(mask(`${PEM} a@b.de`, ...KINDS), '[SECRET_1] [EMAIL_1]')
  t.equal(mask('4111 1111 1111 1111', ...KINDS), '[CARD_1]')
})

const SIZE = 2_000_000
/** Texts that make a search slow if it reads them more than once. */
const HOSTILE = [
  'a', '1', '1 ', '12-', '@', 'a@', 'a@a.', '.', ':', 'a:', '1.', '+', '+1', 'sk-', 'sk-a', 'eyJ', 'eyJaaaaaaaa.', 'eyJaaaaaaaa-', 'DE89', 'DE89 ', 'de 12 ', '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ', 'SG.', 'ya29.', 'xoxb-', '\u00fc', '\ud83d', '(212) ', '212-', 'AKIA', `a@${'a'.repeat(60)}`, `${'a.'.repeat(40)}@`,
]

t.test('time is linear in the length of any text', { timeout: 300_000 }, async t => {
  const { find } = checkOf(KINDS)
  const timeOf = (text: string) => {
    const start = process.cpuUsage()
    find(text)
    return process.cpuUsage(start).user / 1000
  }
  for (const unit of HOSTILE) {
    const text = unit.repeat(SIZE / unit.length)
    timeOf(text.slice(0, SIZE / 10))
    const ms = timeOf(text)
    // A search that reads the text twice for each of its characters would take hours.
    t.ok(ms < 4000, `${JSON.stringify(unit)}: ${ms} ms`)
  }
})
