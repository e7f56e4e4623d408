import t from 'tap'
import { locate } from '../../src/protocols/locate.ts'

const located = (raw: string, named: readonly string[] = []) => {
  const { target, classified } = locate(raw, path => named.includes(path))
  return [target.path + target.query, classified.endpoint.name, classified.pathModel]
}

t.test('a path without /v1 is the path under /v1, unless a route names it', t => {
  t.strictSame(located('/chat/completions?a=1&api-version=2'), ['/v1/chat/completions?a=1&api-version=2', 'chat.completions', null])
  t.strictSame(located('/Messages'), ['/v1/Messages', 'messages', null])
  t.strictSame(located('/messages/count_tokens'), ['/v1/messages/count_tokens', 'messages.count_tokens', null])
  t.strictSame(located('/responses'), ['/v1/responses', 'responses', null])
  t.strictSame(located('/models'), ['/v1/models', 'models.list', null])
  t.strictSame(located('/models/gpt-5'), ['/v1/models/gpt-5', 'models.get', 'gpt-5'])
  t.strictSame(located('/embeddings/'), ['/v1/embeddings/', 'embeddings', null])
  t.strictSame(located('/chat/completions', ['/chat/completions']), ['/chat/completions', 'other', null])
  t.strictSame(located('/chatter'), ['/chatter', 'other', null])
  t.strictSame(located('/v1/chat/completions'), ['/v1/chat/completions', 'chat.completions', null])
  t.throws(() => located('/models/a%2fb/..'), { code: 'bad_request_target' })
  t.end()
})
