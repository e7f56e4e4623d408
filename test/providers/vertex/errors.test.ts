import { gzipSync } from 'node:zlib'
import t from 'tap'
import { readError } from '../../../src/providers/vertex/errors.ts'

function read(isClaude: boolean, status: number, body: string | Buffer, headers: string[] = []): string {
  const { decoder } = readError(isClaude, status, headers)
  decoder?.push(Buffer.from(body))
  return decoder?.end().toString() ?? ''
}

const NOT_FOUND = JSON.stringify({
  error: { code: 404, message: "Publisher Model `projects/my-project/locations/eu/publishers/google/models/x` was not found", status: 'NOT_FOUND' },
})

t.test('the name of the operator\'s project is masked in errors', async t => {
  t.equal(read(false, 404, NOT_FOUND), NOT_FOUND.replace('my-project', '***'))
  t.equal(read(false, 404, gzipSync(NOT_FOUND), ['content-encoding', 'gzip']), NOT_FOUND.replace('my-project', '***'))
  t.equal(read(false, 429, '{"error":{"message":"for consumer \'project_number:123\'"}}'), '{"error":{"message":"for consumer \'project_number:***\'"}}')
  t.equal(read(false, 502, '<p>projects/my-project'), '<p>projects/***')
  t.strictSame(readError(false, 404, ['content-length', '5', 'X-A', 'content-length']).headers, ['X-A', 'content-length'])
})

t.test('an error for a client of Claude has the content type application/json', async t => {
  const headers = ['Content-Type', 'text/html']
  t.strictSame(readError(true, 502, headers).headers, ['Content-Type', 'application/json'])
  t.strictSame(readError(false, 502, headers).headers, headers)
})

t.test('clients of Claude get errors of Vertex AI in the shape of Anthropic\'s API', async t => {
  const own = '{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens"},"request_id":"r"}'
  t.equal(read(true, 400, own), own)
  const of = (status: number, body: string): unknown => JSON.parse(read(true, status, body))
  const message = 'Publisher Model `projects/***/locations/eu/publishers/google/models/x` was not found'
  t.strictSame(of(404, NOT_FOUND), { type: 'error', error: { type: 'not_found_error', message } })
  t.match(of(429, `[${NOT_FOUND}]`), { error: { type: 'rate_limit_error', message } })
  t.match(of(500, '<p>'), { error: { type: 'api_error', message: 'the upstream responded with an error' } })
  t.match(of(418, '{}'), { error: { type: 'invalid_request_error' } })
})
