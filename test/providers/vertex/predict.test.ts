import { gzipSync } from 'node:zlib'
import t from 'tap'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { predictBody, readPrediction } from '../../../src/providers/vertex/predict.ts'

function requestOf(method: string) {
  const path = `/v1beta/models/gemini-embedding-001:${method}`
  return { endpoint: classifyPath(path).endpoint, path, query: '', model: 'gemini-embedding-001', stream: false }
}

t.test('embedding requests become predict requests', async t => {
  const of = (body: object): unknown => JSON.parse(predictBody(Buffer.from(JSON.stringify(body))).toString())
  t.strictSame(of({ content: { parts: [{ text: 'a' }, { text: 'b' }] }, taskType: 'RETRIEVAL_QUERY', title: 't', outputDimensionality: 8 }), {
    instances: [{ content: 'a\nb', task_type: 'RETRIEVAL_QUERY', title: 't' }], parameters: { outputDimensionality: 8 },
  })
  t.strictSame(of({ requests: [{ model: 'models/m', content: { parts: [{ text: 'a' }] }, output_dimensionality: 8 }, { content: { parts: [{ text: 'b' }] } }] }), {
    instances: [{ content: 'a' }, { content: 'b' }], parameters: { outputDimensionality: 8 },
  })
  for (const odd of [{ requests: 5 }, { requests: [] }, { requests: [null, { content: 'a' }] }, { content: { parts: 5 } }, []]) {
    t.doesNotThrow(() => of(odd), JSON.stringify(odd))
  }
  t.throws(() => of({ content: { parts: [{ inlineData: {} }] } }), { code: 'not_translatable' })
})

t.test('predictions become embedding responses', async t => {
  const predictions = [1, 2].map(n => ({ embeddings: { values: [n, 0.5], statistics: { token_count: n, truncated: false } } }))
  const read = (method: string, body: Buffer, headers: string[] = []): unknown => {
    const { decoder, headers: kept } = readPrediction(requestOf(method), headers)
    t.strictSame(kept, ['x-a', '1'].slice(0, headers.length))
    decoder?.push(body)
    const text = decoder?.end().toString() ?? ''
    return decoder?.fault?.code ?? JSON.parse(text)
  }
  const body = Buffer.from(JSON.stringify({ predictions }))
  t.strictSame(read('batchEmbedContents', body), { embeddings: [{ values: [1, 0.5] }, { values: [2, 0.5] }], usageMetadata: { promptTokenCount: 3 } })
  const headers = ['Content-Encoding', 'gzip', 'x-a', '1', 'content-length', '9']
  t.strictSame(read('embedContent', gzipSync(Buffer.from(JSON.stringify({ predictions: predictions.slice(0, 1) }))), headers), {
    embedding: { values: [1, 0.5] }, usageMetadata: { promptTokenCount: 1 },
  })
  t.equal(read('embedContent', Buffer.from('{}')), 'upstream_invalid')
})
