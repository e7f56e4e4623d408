import t from 'tap'
import { readReply } from '../../../src/policy/hooks/hook-reply.ts'

const ASKED = { on: 'request' as const, ids: new Set(['t1', 't2']), replaces: true }

function read(reply: unknown, asked: Parameters<typeof readReply>[1] = ASKED) {
  return readReply(Buffer.from(typeof reply === 'string' ? reply : JSON.stringify(reply)), asked)
}

t.test('valid replies', t => {
  t.match(read(''), { action: 'allow' })
  t.match(read({ action: 'allow', note: 'ignored', tags: { a: 'b' } }), { action: 'allow', tags: new Map([['a', 'b']]) })
  t.match(read({ action: 'refuse', message: 'no\r\nx-evil: 1\u202e' }), { action: 'refuse', message: 'no x-evil: 1' })
  t.match(read({ action: 'refuse', message: '\n' }), { message: null })
  t.match(read({ action: 'replace', texts: [{ id: 't1', text: '' }], parameters: { temperature: 0 } }), {
    texts: new Map([['t1', '']]), parameters: new Map([['temperature', 0]]),
  })
  t.match(read({ action: 'tag', tags: { __proto__x: 'x' } }), { action: 'tag' })
  t.end()
})

t.test('each reply that the schema does not allow is invalid, and the reason quotes nothing of it', t => {
  const invalid: Record<string, [unknown, Parameters<typeof readReply>[1]?]> = {
    'the reply is not JSON in UTF-8': ['{"action":"sekrit'],
    'the reply is not a JSON object': [['allow']],
    'action is none of allow, refuse, replace, tag': [{ action: 'sekrit' }],
    'message belongs to action refuse, not allow': [{ action: 'allow', message: 'x' }],
    'message is not a string': [{ action: 'refuse', message: {} }],
    'message has more than 1000 characters': [{ action: 'refuse', message: 'x'.repeat(1001) }],
    'texts belong to action replace, not allow': [{ action: 'allow', texts: [] }],
    'texts is not a list': [{ action: 'replace', texts: { t1: 'x' } }],
    'there are more texts than were sent': [{ action: 'replace', texts: [1, 2, 3] }],
    'a text is not an object': [{ action: 'replace', texts: ['x'] }],
    'a text has an id that was not sent': [{ action: 'replace', texts: [{ id: 'sekrit', text: '' }] }],
    'the text t1 is there twice': [{ action: 'replace', texts: [{ id: 't1', text: '' }, { id: 't1', text: '' }] }],
    'the text t1 is not a string': [{ action: 'replace', texts: [{ id: 't1' }] }],
    'the text t1 has a broken character': ['{"action":"replace","texts":[{"id":"t1","text":"\\ud800"}]}'],
    'parameters belong to action replace, not tag': [{ action: 'tag', tags: {}, parameters: { a: 1 } }],
    'a response has no parameters': [{ action: 'replace', parameters: { a: 1 } }, { ...ASKED, on: 'response' }],
    'action is replace, and there are neither texts nor parameters': [{ action: 'replace' }],
    'action is replace, and nothing can be replaced here': [{ action: 'replace', parameters: { a: 1 } }, { ...ASKED, replaces: false }],
    'action is tag, and there are no tags': [{ action: 'tag' }],
    'tags do not belong to action refuse': [{ action: 'refuse', tags: { a: 'b' } }],
    'tags come too late: a response is already counted': [{ action: 'tag', tags: {} }, { ...ASKED, on: 'response' }],
    'a tag is not a string': [{ action: 'tag', tags: { a: 1 } }],
    'there are more than 20 tags': [{ action: 'tag', tags: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [n, ''])) }],
    'the JSON text is nested more than 1000 levels deep': [`{"action":"allow","x":${'['.repeat(5000)}${']'.repeat(5000)}}`],
  }
  for (const [reason, [reply, asked]] of Object.entries(invalid)) t.equal(read(reply, asked), reason)
  t.equal(readReply(Buffer.from([0x7b, 0xff]), ASKED), 'the reply is not JSON in UTF-8')
  t.end()
})
