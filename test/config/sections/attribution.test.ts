import t from 'tap'
import type { Test } from 'tap'
import { load as loadText, LEAST } from '../../behaviour/config/loading.ts'

function load(t: Test, attribution: string) {
  return loadText(t, `attribution: ${attribution}\n${LEAST}auth: open\n`).config.attribution
}

t.test('users and tags have sources, and a limit of values', async t => {
  t.same(load(t, '{ user: [header:X-User, body], tags: { project: [header, body], env: [header] }, require: [project, user] }'), {
    user: [{ from: 'header', name: 'x-user' }, { from: 'body' }],
    tags: new Map([['env', [{ from: 'tags' }]], ['project', [{ from: 'tags' }, { from: 'body' }]]]),
    require: ['project', 'user'],
    values: 1000,
  })
  t.same(load(t, '{ user: [claim:email, claim:a.b] }')?.user, [{ from: 'claim', name: 'email' }, { from: 'claim', name: 'a.b' }])
  t.match(load(t, '{ tags: { a: [body] }, values: 5 }'), { user: [], values: 5 })
  t.equal(loadText(t, `${LEAST}auth: open\n`).config.attribution, null)
})

t.test('an invalid value is reported with line and column', async t => {
  for (const [attribution, problem] of [
    ['{ tags: { project: [header] }, require: [projekt] }', /gateway\.yaml:1:\d+.*no tag "projekt"; did you mean "project"/s],
    ['{ tags: { project: [header] }, require: [user] }', /attribution\.user has no source/],
    ['{ user: [header:authorization] }', /gateway\.yaml:1:\d+.*can hold a credential/s],
    ['{ user: [header:x-api-key] }', /can hold a credential/],
    ['{ user: [header:content-type] }', /describes the request/],
    ['{ user: [header:host] }', /sets this header itself/],
    ['{ user: [cookie] }', /gateway\.yaml:1:\d+/],
    ['{ user: [] }', /gateway\.yaml:1:\d+/],
    ['{ tags: { Project: [header] } }', /gateway\.yaml:1:\d+/],
    ['{ tags: { project: [body] }, values: 0 }', /gateway\.yaml:1:\d+/],
  ] as const) {
    t.throws(() => load(t, attribution), problem, attribution)
  }
})
