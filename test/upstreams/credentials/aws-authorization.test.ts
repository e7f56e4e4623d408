import type * as http from 'node:http'
import { SignatureV4 } from '@smithy/signature-v4'
import t from 'tap'
import { AwsAuthorization, createSha256 } from '../../../src/upstreams/credentials/aws-authorization.ts'
import { ServerClock } from '../../../src/upstreams/credentials/server-clock.ts'
import { signatureFault } from '../../support/aws.ts'

const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const HOST = new URL('https://bedrock-runtime.us-east-1.amazonaws.com')

t.test('signatureFault accepts the signed example of AWS, and no changed version of it', async t => {
  const now = Date.UTC(2015, 7, 30, 12, 36)
  // "Signature Version 4 signing process", AWS General Reference.
  const signature = '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7'
  const example = (headers: Record<string, string>, url = '/?Action=ListUsers&Version=2010-05-08') => signatureFault({
    method: 'GET', url,
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8', host: 'iam.amazonaws.com', 'x-amz-date': '20150830T123600Z',
      authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=${signature}`,
      ...headers,
    },
  } as unknown as http.IncomingMessage, Buffer.alloc(0), KEYS, 'us-east-1/iam', now)
  t.equal(example({}), null)
  t.match(example({ host: 'other.amazonaws.com' }), /does not match/)
  t.match(example({}, '/?Action=ListRoles&Version=2010-05-08'), /does not match/)
  t.match(example({ 'x-amz-target': 'x' }), /not signed/)
})

t.test('each request is signed with path, query, headers, body and date', async t => {
  let now = Date.UTC(2026, 0, 1, 23, 59)
  const keys = { ...KEYS, sessionToken: 'token' }
  const signer = new SignatureV4({ service: 'bedrock', region: 'us-east-1', credentials: keys, sha256: createSha256(), applyChecksum: false })
  const authorization = new AwsAuthorization(signer, new ServerClock({ wall: () => now, monotonic: () => 0 } as never))
  const requests = [
    ['/model/a%3A0/invoke', Buffer.from('{}')],
    ['/model/arn%3Aaws%3Abedrock%3A%2Fx%21%27%28%29%2A/converse-stream', Buffer.from([0xff, 0xfe, 0])],
    ['/health?b=2&a=1%20x', null],
    ['/model/%C3%BC/invoke', Buffer.alloc(100_000, 'a')],
  ] as const
  for (let day = 0; day < 3; day++) {
    for (const [path, body] of requests) {
      const headers = ['Content-Type', 'application/json', 'via', '1.1 x', 'X-Amzn-Bedrock-Trace', 'ENABLED', 'x-amz-meta', ' two  spaces ']
      const signed = await authorization.headersFor({ method: 'POST', path, headers, body }, HOST)
      const all = [...headers, ...signed]
      const sent = Object.fromEntries(all.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), all[i + 1]]] : [])))
      const request = { method: 'POST', url: path, headers: { host: HOST.host, ...sent } } as unknown as http.IncomingMessage
      t.equal(signatureFault(request, body ?? Buffer.alloc(0), keys, 'us-east-1/bedrock', now), null, path)
      t.not(signatureFault(request, Buffer.from('other'), keys, 'us-east-1/bedrock', now), null)
    }
    now += 24 * 3_600_000
  }
})
