import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type * as http from 'node:http'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { googleTokens } from '../../../src/upstreams/credentials/google-tokens.ts'
import { setEnvironment } from '../../support/environment.ts'
import { freePort } from '../../support/free-port.ts'
import { PRIVATE_KEY, claimsOf, serviceAccountFile, startMetadataServer } from '../../support/google-credentials.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'

const REQUEST = { method: 'POST', path: '/', headers: [], body: null }
const HOST = new URL('https://aiplatform.googleapis.com')
const NEVER = new AbortController().signal
const PATH = '/v1/projects/{project}/locations/global'

function fetchToken(credentials: string | null, project: string | null = null) {
  return googleTokens({ kind: 'google', headers: ['authorization', 'x-goog-user-project'], credentials, project }, systemClock)(NEVER)
}

t.test('a service account file gives a token', async t => {
  const server = await startTokenServer(t)
  const { authorization, lifetimeMs } = await fetchToken(serviceAccountFile(t, server.url))
  t.strictSame(authorization.headersFor(REQUEST, HOST), ['authorization', 'Bearer token-1'])
  t.equal(authorization.pathFor?.(PATH), '/v1/projects/file-project/locations/global')
  t.ok(lifetimeMs > 3_590_000 && lifetimeMs <= 3_600_000, `${lifetimeMs} ms`)
  const body = server.requests[0]?.body
  t.equal(body?.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  t.match(claimsOf(body?.get('assertion') ?? ''), {
    iss: 'gateway@file-project.iam.gserviceaccount.com', scope: 'https://www.googleapis.com/auth/cloud-platform',
  })
})

for (const minutes of [-10, 10, 600]) {
  t.test(`an assertion uses the clock of the token server, which differs by ${minutes} minutes`, async t => {
    const server = await startTokenServer(t)
    const now = () => Date.now() + minutes * 60_000
    const isInTime = () => {
      const { iat, exp } = claimsOf(server.requests.at(-1)?.body.get('assertion') ?? '') as { iat: number, exp: number }
      return Math.abs(iat - now() / 1_000) < 60 && exp - iat === 3_600
    }
    server.answer = (res, token) => {
      res.setHeader('date', new Date(now()).toUTCString())
      if (isInTime()) token()
      else sendJson(res, 400, { error: 'invalid_grant', error_description: 'Invalid JWT: Token must be a short-lived token' })
    }
    const fetchAgain = googleTokens(
      { kind: 'google', headers: ['authorization', 'x-goog-user-project'], credentials: serviceAccountFile(t, server.url), project: null }, systemClock,
    )
    const { lifetimeMs } = await fetchAgain(NEVER)
    t.ok(lifetimeMs > 3_590_000 && lifetimeMs <= 3_600_000, `${lifetimeMs} ms`)
    t.equal(server.requests.length, 2)
    await fetchAgain(NEVER)
    t.equal(server.requests.length, 3, 'the next assertion is in time at once')
  })
}

t.test('a refused assertion is not sent again if the reason is not the clock', async t => {
  const server = await startTokenServer(t)
  server.fault = res => sendJson(res, 400, { error: 'invalid_grant' })
  await t.rejects(fetchToken(serviceAccountFile(t, server.url)), { code: 'credential_unavailable' })
  t.equal(server.requests.length, 1)
})

t.test('credentials of a user can charge the quota of another project', async t => {
  const server = await startTokenServer(t)
  const file = join(t.testdir({}), 'user.json')
  writeFileSync(file, JSON.stringify({
    type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: 'r', quota_project_id: 'quota', token_uri: server.url,
  }))
  const { authorization } = await fetchToken(file)
  t.strictSame(authorization.headersFor(REQUEST, HOST), ['authorization', 'Bearer token-1', 'x-goog-user-project', 'quota'])
  t.throws(() => authorization.pathFor?.(PATH), { cause: { message: 'the credentials name no project; set vertex.project' } })
  t.equal(authorization.pathFor?.('/v1/projects/mine/locations/global'), '/v1/projects/mine/locations/global')
})

t.test('workload identity exchanges the token of another provider', async t => {
  const server = await startTokenServer(t)
  const directory = t.testdir({ subject: 'subject-token' })
  const file = join(directory, 'identity.json')
  writeFileSync(file, JSON.stringify({
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/pool/providers/kubernetes',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: server.url,
    credential_source: { file: join(directory, 'subject') },
  }))
  const { authorization } = await fetchToken(file, 'environment-project')
  t.strictSame(authorization.headersFor(REQUEST, HOST), ['authorization', 'Bearer token-1'])
  t.equal(authorization.pathFor?.(PATH), '/v1/projects/environment-project/locations/global')
  t.equal(server.requests[0]?.body.get('subject_token'), 'subject-token')
})

t.test('the metadata server gives token and project', async t => {
  const server = await startMetadataServer(t)
  const { authorization, lifetimeMs } = await fetchToken(null)
  t.strictSame(authorization.headersFor(REQUEST, HOST), ['authorization', 'Bearer metadata-token'])
  t.equal(authorization.pathFor?.(PATH), '/v1/projects/metadata-project/locations/global')
  t.equal(lifetimeMs, 3_599_000)
  t.strictSame(server.requests.toSorted(), [
    'Google /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform',
    'Google /computeMetadata/v1/project/project-id',
  ])
  server.status = 404
  await t.rejects(fetchToken(null), { code: 'credential_unavailable', cause: { message: 'the metadata server responded 404' } })
})

t.test('an unreachable metadata server is reported', async t => {
  setEnvironment(t, { GCE_METADATA_HOST: `127.0.0.1:${await freePort()}` })
  await t.rejects(fetchToken(null), { cause: { message: 'the metadata server cannot be reached: ECONNREFUSED' } })
})

for (const [what, fault, reason] of [
  ['refuses the account', res => sendJson(res, 400, { error: 'invalid_grant', error_description: 'Invalid JWT: s3cret' }), 'the token server responded 400 (invalid_grant)'],
  ['repeats the request in its error', res => sendJson(res, 403, { error: { status: 'Secret s3cret' } }), 'the token server responded 403'],
  ['sends a page', res => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>s3cret'), /^the metadata server sent no |^the token server sent no /],
  ['sends no token', res => sendJson(res, 200, { token_type: 'Bearer' }), /token/],
  ['sends a token with a line break', res => sendJson(res, 200, { token_type: 'Bearer', expires_in: 10, access_token: 'a\nb' }), 'the secret has a character that is not allowed in a header'],
] as readonly (readonly [string, (res: http.ServerResponse) => void, string | RegExp])[]) {
  t.test(`a token server that ${what} gives no token`, async t => {
    const server = await startTokenServer(t)
    server.fault = fault
    const error = await fetchToken(serviceAccountFile(t, server.url)).catch((thrown: unknown) => thrown) as Error
    t.match(error, { code: 'credential_unavailable', cause: { message: reason } })
    t.notMatch(`${error.stack}${String(error.cause)}`, /s3cret|PRIVATE KEY/)
  })
}

t.test('an unreachable token server is reported', async t => {
  const file = serviceAccountFile(t, `http://127.0.0.1:${await freePort()}/token`)
  await t.rejects(fetchToken(file), { cause: { message: 'the token server cannot be reached: ECONNREFUSED' } })
})

t.test('files without usable credentials are refused', async t => {
  const server = await startTokenServer(t)
  for (const [members, reason] of [
    [{ token_uri: 'http://token.example.com/token' }, 'token_uri in the file is not an https URL'],
    [{ private_key: PRIVATE_KEY.replaceAll(/[a-z]/g, 'x') }, /^the token server sent no token of Google Cloud: ERR_/],
    [{ client_email: undefined }, 'the token server sent no token of Google Cloud: Error'],
  ] as const) {
    const error = await fetchToken(serviceAccountFile(t, server.url, members)).catch((thrown: unknown) => thrown) as Error
    t.match(error, { code: 'credential_unavailable', cause: { message: reason } })
    t.notMatch(`${error.stack}${String(error.cause)}`, 'PRIVATE KEY')
  }
  const file = serviceAccountFile(t, server.url)
  writeFileSync(file, PRIVATE_KEY)
  await t.rejects(fetchToken(file), { cause: { message: 'the credentials file is not a JSON object' } })
  rmSync(file)
  await t.rejects(fetchToken(file), { cause: { message: 'the file cannot be read: ENOENT' } })
})
