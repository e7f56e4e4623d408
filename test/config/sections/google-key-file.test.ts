import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { LEAST, load } from '../../behaviour/config/loading.ts'

const KEY = { type: 'service_account', project_id: 'a-project', client_email: 'a@b.iam', private_key: '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n' }

function fileWith(t: Test, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'credential-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'key')
  writeFileSync(file, text)
  return file
}

function warningsOf(t: Test, upstream: string): string[] {
  const { warnings } = load(t, `${LEAST.replace(/^upstreams:.*$/m, `upstreams: { demo: ${upstream} }`)}\n`)
  return warnings.map(({ message }) => message).filter(message => /file|project|private_key/.test(message))
}

t.test('an empty secret file causes a warning', async t => {
  for (const text of ['', ' \n', '\uFEFF', '\uFEFF\r\n']) {
    const [warning, ...more] = warningsOf(t, `{ url: "http://127.0.0.1:1", auth: { bearer: { file: "${fileWith(t, text)}" } } }`)
    t.equal(warning, 'the file is empty; until it has a secret, requests to this upstream fail')
    t.strictSame(more, [])
  }
  t.strictSame(warningsOf(t, `{ url: "http://127.0.0.1:1", auth: { bearer: { file: "${fileWith(t, 'sk-1')}" } } }`), [])
})

t.test('a Google credentials file without a valid key causes a warning', async t => {
  for (const [text, expected] of [
    [JSON.stringify(KEY), null],
    [`\uFEFF${JSON.stringify(KEY)}`, null],
    [JSON.stringify({ type: 'authorized_user', client_id: 'a', client_secret: 'b', refresh_token: 'c' }), 'project'],
    ['', /^the file is empty/],
    ['AIzaSyA-an-api-key', /it is not a JSON object; until/],
    ['{"type": "service_account"', /it is not a JSON object/],
    ['[]', /it is not a JSON object/],
    ['"text"', /it is not a JSON object/],
    ['{}', /it has no type, such as service_account/],
    [JSON.stringify({ ...KEY, private_key: undefined }), /of the type service_account has no private_key;/],
    [JSON.stringify({ ...KEY, private_key: '' }), /has no private_key;/],
    [JSON.stringify({ ...KEY, private_key: 'abc' }), /private_key in this file is not a key in PEM form/],
    [JSON.stringify({ ...KEY, client_email: undefined }), /has no client_email;/],
    [JSON.stringify({ type: 'external_account', audience: 'a' }), /has no subject_token_type, token_url, credential_source;/],
    [JSON.stringify({ ...KEY, project_id: undefined }), 'project'],
  ] as const) {
    const warnings = warningsOf(t, `{ vertex: {}, auth: { google: { credentials: "${fileWith(t, text)}" } } }`).filter(message => !message.startsWith('a project is needed') || expected === 'project')
    if (expected === null) t.strictSame(warnings, [])
    else t.match(warnings[0], expected === 'project' ? 'a project is needed: the credentials file has no project_id, and GOOGLE_CLOUD_PROJECT is not set' : expected, text.slice(0, 40))
    t.notMatch(warnings.join(), /abc|AIza/, 'the warning contains no text of the file')
  }
  t.strictSame(warningsOf(t, `{ vertex: { project: a-project }, auth: { google: { credentials: "${fileWith(t, JSON.stringify({ ...KEY, project_id: undefined }))}" } } }`), [])
  t.match(warningsOf(t, `{ vertex: {}, auth: { pool: [{ google: { credentials: "${fileWith(t, JSON.stringify({ ...KEY, project_id: undefined }))}" } }] } }`), [/a project is needed/])
})
