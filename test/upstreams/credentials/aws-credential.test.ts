import type * as http from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { signatureFault } from '../../support/aws.ts'
import type { AwsKeys } from '../../support/aws.ts'
import { KEYS, KEY_ENVIRONMENT, sendException, setAwsEnvironment, startBedrock } from '../../support/bedrock.ts'
import type { TestBedrock } from '../../support/bedrock.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sendJson } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

t.test('the credentials of a container role are fetched once for all waiting requests', async t => {
  const source = await startSource(t, (req, res) => {
    t.equal(req.headers.authorization, 'container-token')
    source.send(res)
  })
  const { gateway, bedrock } = await start(t, {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'container-token',
  })
  bedrock.keys = source.keys(1)
  t.strictSame(await Promise.all(Array.from({ length: 10 }, () => ask(gateway))), Array(10).fill(200))
  t.equal(source.fetches, 1)
  t.equal(await ask(gateway), 200)
  t.equal(source.fetches, 1)
})

t.test('credentials are fetched before they expire, without delaying requests', async t => {
  const source = await startSource(t, (_req, res) => source.send(res))
  source.lifetime = 5_000
  const { gateway, bedrock } = await start(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/credentials` })
  bedrock.keys = source.keys(1)
  t.equal(await ask(gateway), 200)
  t.equal(await ask(gateway), 200)
  source.lifetime = HOUR
  // Four of the five seconds of the lifetime have passed.
  await source.fetched(2)
  bedrock.keys = source.keys(2)
  t.equal(await ask(gateway), 200)
  t.equal(source.fetches, 2)
})

t.test('the role of an instance is read from the metadata service', async t => {
  const source = await startSource(t, (req, res) => {
    if (req.method === 'PUT' && req.url === '/latest/api/token') res.end('metadata-token')
    else if (req.headers['x-aws-ec2-metadata-token'] !== 'metadata-token') res.writeHead(401).end()
    else if (/\/latest\/meta-data\/iam\/security-credentials\/?$/.test(req.url ?? '')) res.end('gateway-role')
    else if (req.url?.endsWith('/security-credentials/gateway-role')) source.send(res)
    else res.writeHead(404).end()
  })
  const { gateway, bedrock } = await start(t, { AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url, AWS_EC2_METADATA_DISABLED: 'false' })
  bedrock.keys = source.keys(1)
  t.equal(await ask(gateway), 200)
})

t.test('a role is assumed with the credentials of the environment', async t => {
  const source = await startSource(t, (req, res) => {
    void bodyOf(req).then(body => {
      const form = new URLSearchParams(body.toString())
      t.match(Object.fromEntries(form), { Action: 'AssumeRole', RoleArn: 'arn:aws:iam::123456789012:role/gateway', RoleSessionName: 'model-gateway' })
      t.match(req.headers.authorization, KEYS.accessKeyId)
      source.fetches++
      sendAssumedRole(res, source.keys(source.fetches), Date.now() + HOUR)
    })
  })
  const { gateway, bedrock } = await start(
    t, { ...KEY_ENVIRONMENT, AWS_ENDPOINT_URL_STS: source.url }, '{ role_arn: "arn:aws:iam::123456789012:role/gateway" }',
  )
  bedrock.keys = source.keys(1)
  t.equal(await ask(gateway), 200)
})

t.test('after a 403 the credentials are fetched once more, and the request is sent again', async t => {
  const source = await startSource(t, (_req, res) => source.send(res))
  const { gateway, bedrock } = await start(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/credentials` })
  bedrock.keys = source.keys(1)
  t.equal(await ask(gateway), 200)
  bedrock.keys = source.keys(2)
  t.strictSame(await Promise.all(Array.from({ length: 10 }, () => ask(gateway))), Array(10).fill(200))
  t.equal(source.fetches, 2)
  bedrock.respond = res => sendException(res, 403, 'AccessDeniedException', 'User: arn:aws:iam::123456789012:user/gateway is not authorized')
  for (let i = 0; i < 5; i++) t.equal(await ask(gateway), 502)
  t.equal(source.fetches, 2, 'a model that the operator may not use does not fetch credentials for each request')
})

for (const [what, offset] of [['10 minutes ahead', -10 * MINUTE], ['10 minutes behind', 10 * MINUTE], ['an hour ahead', -HOUR]] as const) {
  t.test(`a request is signed again if the clock is ${what} of the clock of AWS`, async t => {
    const { gateway, bedrock } = await start(t, KEY_ENVIRONMENT)
    bedrock.clockOffset = offset
    t.equal(await ask(gateway), 200)
    t.strictSame(bedrock.seen.map(({ fault }) => fault === null), [false, true])
    t.equal(await ask(gateway), 200)
    t.equal(await ask(gateway, { stream: true }), 200)
    t.equal(bedrock.seen.length, 4, 'the next requests are signed with the time of the server at once')
  })
}

t.test('if the clock is two hours ahead, credentials that expire in an hour are not fetched for each request', async t => {
  const source = await startSource(t, (_req, res) => source.send(res))
  const { gateway, bedrock } = await start(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/credentials` })
  bedrock.clockOffset = source.clockOffset = -2 * HOUR
  bedrock.keys = source.keys(2)
  t.equal(await ask(gateway), 200)
  for (let n = 0; n < 5; n++) t.equal(await ask(gateway), 200)
  t.equal(source.fetches, 2, 'no request fetches credentials again')
})

t.test('a role can be assumed with a clock that is 10 minutes off', async t => {
  const clockOffset = 10 * MINUTE
  const faults: (string | null)[] = []
  const source = await startSource(t, (req, res) => {
    void bodyOf(req).then(body => {
      const fault = signatureFault(req, body, KEYS, 'us-east-1/sts', Date.now() + clockOffset)
      faults.push(fault)
      res.setHeader('date', new Date(Date.now() + clockOffset).toUTCString())
      if (fault === null) return sendAssumedRole(res, source.keys(1), Date.now() + clockOffset + HOUR)
      return res.writeHead(403, { 'content-type': 'text/xml' }).end(`<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>Signature expired</Message></Error></ErrorResponse>`)
    })
  })
  const { gateway, bedrock } = await start(
    t, { ...KEY_ENVIRONMENT, AWS_ENDPOINT_URL_STS: source.url }, '{ role_arn: "arn:aws:iam::123456789012:role/gateway" }',
  )
  bedrock.keys = source.keys(1)
  t.equal(await ask(gateway), 200)
  t.strictSame(faults.map(fault => fault === null), [false, true])
})

t.test('without credentials the target fails, and the log says why', async t => {
  const { gateway, bedrock } = await start(t, {})
  t.equal(await ask(gateway), 502)
  t.equal(bedrock.seen.length, 0)
  t.match(gateway.logged.find(({ level }) => level === 50), { upstream: 'aws', msg: 'credentials: no AWS credentials were found' })
})

t.test('the response of a credential source is not logged', async t => {
  const source = await startSource(t, (_req, res) => {
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"code":"AccessDenied","message":"secret-of-the-source"}')
  })
  const { gateway } = await start(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/credentials` })
  t.equal(await ask(gateway), 502)
  t.notMatch(JSON.stringify(gateway.logged), /secret-of-the-source/)
})

/** @param expiresAt ms since 1970 */
function sendAssumedRole(res: http.ServerResponse, { accessKeyId, secretAccessKey, sessionToken }: AwsKeys, expiresAt: number): void {
  res.writeHead(200, { 'content-type': 'text/xml' }).end(`<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
    <Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>
    <SessionToken>${sessionToken}</SessionToken><Expiration>${new Date(expiresAt).toISOString()}</Expiration></Credentials>
    </AssumeRoleResult></AssumeRoleResponse>`)
}

interface Source {
  readonly url: string
  fetches: number
  /** Lifetime of its credentials, ms. */
  lifetime: number
  /** ms by which its clock is ahead. */
  clockOffset: number
  /** The credentials that the nth fetch returns, n from 1. */
  keys(fetch: number): AwsKeys
  send(res: http.ServerResponse): void
  /** Resolves after `count` fetches have their response. */
  fetched(count: number): Promise<void>
}

/** A credential source that returns other credentials at each fetch. */
async function startSource(t: Test, listener: http.RequestListener): Promise<Source> {
  const { url } = await startUpstream(t, listener)
  const waiting = new Map<number, () => void>()
  const source: Source = {
    url,
    fetches: 0,
    lifetime: HOUR,
    clockOffset: 0,
    keys: fetch => ({
      accessKeyId: `ASIATESTTESTTEST${fetch}`, secretAccessKey: `secret-${fetch}-0123456789`, sessionToken: `session-token-${fetch}`,
    }),
    send: res => {
      source.fetches++
      const { accessKeyId, secretAccessKey, sessionToken } = source.keys(source.fetches)
      res.once('finish', () => waiting.get(source.fetches)?.())
      sendJson(res, 200, {
        Code: 'Success', AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken,
        Expiration: new Date(Date.now() + source.clockOffset + source.lifetime).toISOString(),
      })
    },
    fetched: count => {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (source.fetches >= count) resolve()
      else waiting.set(count, resolve)
      return promise
    },
  }
  return source
}

async function start(t: Test, environment: Record<string, string>, aws = '{}'): Promise<{ gateway: TestGateway, bedrock: TestBedrock }> {
  setAwsEnvironment(t, environment)
  const bedrock = await startBedrock(t)
  const gateway = await startTestGateway(t, `
upstreams: { aws: { bedrock: { region: us-east-1, endpoint: "${bedrock.url}" }, auth: { aws: ${aws} } } }
routes: [{ to: { upstream: aws, model: claude } }]
`)
  return { bedrock, gateway }
}

async function ask(gateway: TestGateway, more: object = {}): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], ...more }),
  })
  await response.text()
  return response.status
}
