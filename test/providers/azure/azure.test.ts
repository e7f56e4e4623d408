import t from 'tap'
import { classifyPath } from '../../../src/protocols/classify-path.ts'
import { azure } from '../../../src/providers/azure/azure.ts'

for (const [path, current, dated] of [
  ['/v1/chat/completions', '/openai/v1/chat/completions', '/openai/deployments/my%2Fmini/chat/completions?api-version=2025-04-01-preview'],
  ['/v1/embeddings', '/openai/v1/embeddings', '/openai/deployments/my%2Fmini/embeddings?api-version=2025-04-01-preview'],
  ['/v1/audio/speech', '/openai/v1/audio/speech', '/openai/deployments/my%2Fmini/audio/speech?api-version=2025-04-01-preview'],
  ['/v1/responses', '/openai/v1/responses', '/openai/responses?api-version=2025-04-01-preview'],
  ['/v1/responses/r_1?include=a&b=%20', '/openai/v1/responses/r_1?include=a&b=%20', '/openai/responses/r_1?include=a&b=%20&api-version=2025-04-01-preview'],
  ['/openai/deployments/other/chat/completions?api-version=2024-02-01', '/openai/v1/chat/completions', '/openai/deployments/my%2Fmini/chat/completions?api-version=2025-04-01-preview'],
  ['/openai/v1/responses?api-version=preview&a=1', '/openai/v1/responses?a=1', '/openai/responses?a=1&api-version=2025-04-01-preview'],
  ['/openai/files', '/openai/v1/files', '/openai/files?api-version=2025-04-01-preview'],
] as const) {
  t.test(`the address of ${path} depends on the API version`, async t => {
    const [bare = '', query] = path.split('?')
    const request = {
      endpoint: classifyPath(bare).endpoint, path: bare, query: query === undefined ? '' : `?${query}`, model: 'my/mini', stream: false,
    }
    const at = (apiVersion: string): string => {
      const address = azure({ kind: 'azure', apiVersion }).addressOf(request)
      return address.path + address.query
    }
    t.equal(at('v1'), current)
    t.equal(at('2025-04-01-preview'), dated)
  })
}
