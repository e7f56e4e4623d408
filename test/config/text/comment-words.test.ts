import t from 'tap'
import { CommentWords, MASK } from '../../../src/config/text/comment-words.ts'

const words = new CommentWords()

const CASES: readonly (readonly [comment: string, isBesideCredential: boolean, expected: string])[] = [
  ['the limit of this team', false, 'the limit of this team'],
  ['was sk-a1b2c3d4e5f6', false, `was ${MASK}`],
  ['was hunter2', false, 'was hunter2'],
  ['was hunter2', true, `${MASK} ${MASK}`],
  ['the secret: hunter2.', true, `the secret: ${MASK}.`],
  ['the secret (hunter2)', true, `the secret (${MASK})`],
  ['see https://user:pass@a.example/x?key=1', false, `see https://${MASK}@a.example/x?${MASK}`],
  ['10s, 64mb, 127.0.0.1', true, '10s, 64mb, 127.0.0.1'],
  ['${TOKEN}', true, '${TOKEN}'],
  ['${TOKEN:-hunter2}', false, '${TOKEN:-***}'],
  ['the 2026 key', true, 'the 2026 key'],
  ['the 20261 key', true, 'the 20261 key'],
  ['the 2026key key', true, `the ${MASK} key`],
  ['', true, ''],
]

for (const [comment, isBesideCredential, expected] of CASES) {
  t.test(`secrets in a comment ${isBesideCredential ? 'beside a credential ' : ''}are masked: ${comment}`, async t => {
    t.equal(words.mask(comment, isBesideCredential), expected)
  })
}
