import { gzipSync } from 'node:zlib'
import t from 'tap'
import { StreamMask, maskBody, maskHeaders, secretsOf } from '../../../src/proxy/upstream/secret-mask.ts'

const SECRET = 'sk-operator/secret'
const MASK = '*'.repeat(SECRET.length)

t.test('secretsOf finds the credentials in sent headers', async t => {
  t.strictSame(secretsOf(['authorization', `Bearer ${SECRET}`]), [SECRET])
  t.strictSame(secretsOf(['x-api-key', SECRET]), [SECRET])
  t.strictSame(secretsOf(['authorization', 'Bearer short']), [], 'a short value can occur by chance')
  const signature = 'AWS4-HMAC-SHA256 Credential=a/b, Signature=c'
  t.strictSame(secretsOf(['x-amz-date', '20261125T080000Z', 'authorization', signature, 'x-amz-security-token', 'a-session-token']), [
    signature, 'a-session-token',
  ])
})

t.test('credentials in response headers are masked', async t => {
  const headers = ['content-type', 'text/plain', 'www-authenticate', `Bearer realm="${SECRET}"`, 'location', `/?key=${encodeURIComponent(SECRET)}`]
  t.strictSame(maskHeaders(headers, [SECRET]), [
    'content-type', 'text/plain', 'www-authenticate', `Bearer realm="${MASK}"`, 'location', `/?key=${MASK}**`,
  ])
  const clean = headers.slice(0, 2)
  t.equal(maskHeaders(clean, [SECRET]), clean)
})

t.test('credentials in a body are masked, plain or compressed', async t => {
  const text = `{"error":"${SECRET} and ${SECRET.replace('/', '\\/')}"}`
  const masked = `{"error":"${MASK} and ${MASK}*"}`
  t.equal(String(maskBody(Buffer.from(text), null, [SECRET])), masked)
  t.equal(String(maskBody(gzipSync(text), 'gzip', [SECRET])), masked)
  t.equal(maskBody(gzipSync('{"error":"x"}'), 'gzip', [SECRET]), null)
  t.equal(maskBody(Buffer.from(text), 'gzip', [SECRET]), null, 'the body is not gzip')
  t.equal(maskBody(Buffer.from(text), 'unknown', [SECRET]), null)
})

t.test('a credential split over two chunks is masked', async t => {
  const text = Buffer.from(`xx${SECRET}${SECRET}sk-operator/secre sk-`)
  const masked = `xx${MASK}${MASK}sk-operator/secre sk-`
  for (let at = 0; at <= text.length; at++) {
    const mask = new StreamMask([SECRET])
    const parts = [mask.push(text.subarray(0, at)), mask.push(text.subarray(at)), mask.rest()]
    t.equal(String(Buffer.concat(parts)), masked, `at ${at}`)
  }
})

t.test('a mask holds back fewer bytes than the secret has', async t => {
  const mask = new StreamMask([SECRET])
  let sent = 0
  let got = ''
  for (const byte of Buffer.from(`${SECRET} ${SECRET}`)) {
    got += mask.push(Buffer.from([byte]))
    sent++
    t.ok(sent - got.length < SECRET.length)
  }
  t.equal(got + String(mask.rest()), `${MASK} ${MASK}`)
})
