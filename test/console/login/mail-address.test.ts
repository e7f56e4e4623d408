import t from 'tap'
import { mailOf } from '../../../src/console/login/mail-address.ts'

t.test('mailOf accepts an address with one @, a local part and only visible characters', async t => {
  for (const [email, mail] of [
    ['Ada@Example.com', 'ada@example.com'],
    ["o'hara+x.y_z@mail-1.example.co", "o'hara+x.y_z@mail-1.example.co"],
    ['jürgen@bücher.example', 'jürgen@bücher.example'],
    ['a@evil.com@example.com', null],
    ['"a@evil.com"@example.com', null],
    ['@example.com', null],
    ['ada@', null],
    ['ada', null],
    ['', null],
    [' ada@example.com', null],
    ['ada @example.com', null],
    ['ada@example.com\n', null],
    ['ada\0@example.com', null],
    ['ada\u00A0@example.com', null],
    ['ada\u200B@example.com', null],
    ['ada\u202E@example.com', null],
    ['ada\u3164@example.com', null],
    ['ada\uFE0F@example.com', null],
    ['ada\u00AD@example.com', null],
    ['ada\uFF20example.com', null],
    ['ada@example.com\uFF20example.com', null],
    ['\uFF41da@example.com', null],
    ['\u212Aim@example.com', null],
    ['ada\uD800@example.com', null],
    ['ada,bob@example.com', null],
    ['Ada <ada@example.com>', null],
    ['<ada@example.com>', null],
    [`${'a'.repeat(400)}@example.com`, null],
    [['ada@example.com'], null],
    [{ toString: 'ada@example.com' }, null],
    [null, null],
    [7, null],
  ] as const) {
    t.equal(mailOf([{ email, email_verified: true }]), mail, JSON.stringify(email)?.slice(0, 50))
  }
})

t.test('mailOf returns an address only if email_verified is true or absent', async t => {
  for (const word of [true, 'true', undefined]) t.equal(mailOf([{ email: 'a@b.c', email_verified: word }]), 'a@b.c', String(word))
  for (const word of [false, 'false', 'yes', 'TRUE', 0, 1, null, {}, [true]]) t.equal(mailOf([{ email: 'a@b.c', email_verified: word }]), null, JSON.stringify(word))
})
