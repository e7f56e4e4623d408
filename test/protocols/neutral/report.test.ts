import t from 'tap'
import { TranslationReport } from '../../../src/protocols/neutral/report.ts'
import type { NeutralField } from '../../../src/protocols/neutral/request.ts'

const report = (followed: readonly string[] = []) => new TranslationReport(new Map<NeutralField, string>([['maxTokens' as NeutralField, 'max_completion_tokens']]), new Set(followed))

t.test('each dropped field is named once, in order, with the name in the protocol of the client', async t => {
  const dropped = report()
  dropped.drop('b')
  dropped.drop('a')
  dropped.drop('b')
  dropped.dropField('maxTokens' as NeutralField)
  dropped.dropField('topK' as NeutralField)
  t.strictSame(dropped.dropped, ['b', 'a', 'max_completion_tokens', 'topK'])
})

t.test('at most twenty dropped fields are named, and further fields are counted', async t => {
  const dropped = report()
  for (let n = 0; n < 20; n++) dropped.drop(`f${n}`)
  t.equal(dropped.dropped.length, 20)
  dropped.drop('f20')
  t.strictSame(dropped.dropped.slice(19), ['f19', 'and 1 more'])
  for (let n = 21; n < 1005; n++) dropped.drop(`f${n}`)
  t.equal(dropped.dropped.at(-1), 'and 985 more')
  dropped.drop('f0')
  t.equal(dropped.dropped.at(-1), 'and 986 more', 'repetitions are not detected beyond a thousand fields')
})

t.test('the long path of a dropped field is cut', async t => {
  const dropped = report()
  dropped.drop('x'.repeat(101))
  dropped.drop(`${'x'.repeat(100)}y`)
  t.strictSame(dropped.dropped, ['x'.repeat(100)])
})

t.test('names of speakers and the detail of images are reported as dropped if they are given', async t => {
  const dropped = report()
  dropped.dropNames([{ name: null }])
  dropped.dropDetail({ path: 'a', detail: null })
  dropped.dropDetail({ path: 'a', detail: 'auto' })
  t.strictSame(dropped.dropped, [])
  dropped.dropNames([{ name: null }, { name: 'ann' }])
  dropped.dropDetail({ path: 'a', detail: 'low' })
  t.strictSame(dropped.dropped, ['messages[].name', 'a.detail'])
})

t.test('a refusal names the field', async t => {
  t.throws(() => report().refuse('a.b', 'the target has none'), { code: 'not_translatable', message: 'a.b: the target has none', param: 'a.b' })
})

t.test('unread members are reported as dropped, except members in the field table', async t => {
  const tracked = report(['tools', 'very.long.path'])
  const seen: string[] = []
  for (const path of ['tools', 'other', 'tools[0]', 'x'.repeat(50)]) tracked.track({ path, dropUnread: () => seen.push(path) })
  t.strictSame(seen, [])
  tracked.dropUnread()
  t.strictSame(seen, ['other', 'tools[0]', 'x'.repeat(50)])
})
