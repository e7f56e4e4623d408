import t from 'tap'
import { entriesFor, roleFor } from '../../../src/console/login/roles.ts'
import type { OidcConfig } from '../../../src/config/types.ts'

const OIDC: OidcConfig = {
  issuer: 'https://login.test', clientId: 'gateway', clientSecret: null, callers: false, scopes: ['openid'], groupsClaim: 'groups',
  admins: ['admins', 'Ada@Example.com'], viewers: ['staff', 'admins', '*@Example.org'],
}

t.test('roleFor returns the role for the groups or the mail address of a user', async t => {
  for (const [mail, groups, role] of [
    [null, ['admins'], 'admin'],
    [null, ['staff'], 'viewer'],
    [null, ['staff', 'admins'], 'admin'],
    [null, ['Admins', 'staff2', ''], null],
    ['ada@example.com', [], 'admin'],
    ['ada@example.com.test', [], null],
    ['bob@example.org', [], 'viewer'],
    ['bob@sub.example.org', [], null],
    ['bob@example.org@example.net', [], null],
    ['bob@notexample.org', [], null],
    [null, ['Ada@Example.com', 'ada@example.com', '*@Example.org'], null],
    [null, [], null],
  ] as const) {
    t.equal(roleFor(OIDC, entriesFor(OIDC, { mail, groups })), role, `${mail} ${groups.join()}`)
  }
})
