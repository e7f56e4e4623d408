import { chownSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Transcript } from '../../src/transcripts/transcript.ts'
import { TranscriptStore } from '../../src/transcripts/transcript-store.ts'

function transcript(requestId: string, expiresAt: number, words: string): Transcript {
  const text = { contentType: 'application/json', bytes: Buffer.from(words), total: words.length }
  return { requestId, startedAt: 1, key: 'team-a', expiresAt, request: text, response: text }
}

t.test('an expired transcript is not found, and its text is erased from the file', async t => {
  const file = join(t.testdir({}), 'bodies.db')
  const store = new TranscriptStore(file)
  store.add(transcript('one', 100, 'a secret prompt'))
  store.add(transcript('two', 200, 'another prompt'))
  t.equal(store.find('one', 99).length, 1)
  t.equal(store.find('one', 100).length, 0, 'a transcript expires at `expiresAt`')
  t.equal(store.expire(100), false)
  t.equal(store.count(), 1)
  t.equal(Buffer.from(store.find('two', 100)[0]?.response.bytes ?? []).toString(), 'another prompt')
  store.close()
  t.notOk(readFileSync(file).includes('a secret prompt'))
  t.equal(statSync(file).mode & 0o077, 0, 'only the owner can read the file')
})

const skip = process.getuid?.() === 0 ? false : 'only root gives files away'
t.test('files that root creates get the owner of the directory', { skip }, async t => {
  const directory = t.testdir({})
  chownSync(directory, 65_534, 65_533)
  const file = join(directory, 'bodies.db')
  const store = new TranscriptStore(file)
  store.add(transcript('one', 100, 'a prompt'))
  t.match(statSync(file), { uid: 65_534, gid: 65_533, mode: 0o100600 })
  store.close()
})

t.test('a file of another program is refused and not changed', async t => {
  const file = join(t.testdir({ 'bodies.db': 'some text that is no database at all' }), 'bodies.db')
  t.throws(() => new TranscriptStore(file))
  t.equal(readFileSync(file, 'utf8'), 'some text that is no database at all')
})
