import fc from 'fast-check'
import t from 'tap'
import { compileGlob, compileGlobs, compileOverlaps } from '../../src/config/glob.ts'

/** Few letters, so that pieces repeat and overlap. */
const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '['), maxLength: 12 })
const glob = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '[', '*'), maxLength: 10 })

/** The definition of globs, slow and simple: tries each number of characters for each star. */
function matches(glob: string, text: string): boolean {
  if (glob === '') return text === ''
  if (glob[0] !== '*') return text[0] === glob[0] && matches(glob.slice(1), text.slice(1))
  return Array.from({ length: text.length + 1 }, (_, taken) => taken)
    .some(taken => matches(glob.slice(1), text.slice(taken)))
}

t.test('a star matches any number of characters, including slashes', async t => {
  const cases: [string, string, boolean][] = [
    ['/v1/*', '/v1/', true],
    ['/v1/*', '/v1/chat/completions', true],
    ['/v1/*', '/v1', false],
    ['/v1/messages*', '/v1/messages', true],
    ['/v1/messages*', '/v1/messages/count_tokens', true],
    ['*-mini', 'gpt-4.1-mini', true],
    ['*-mini', 'gpt-4.1-mini-2', false],
    ['gpt-*-mini', 'gpt--mini', true],
    ['gpt-*-mini', 'gpt-mini', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*b*b*', 'ab', false],
    ['*', '', true],
    ['**', 'x', true],
    ['', '', true],
    ['', 'x', false],
  ]
  for (const [glob, text, expected] of cases) {
    t.equal(compileGlob(glob)(text), expected, `${glob} ${expected ? 'takes' : 'leaves'} ${text}`)
  }
})

t.test('each character except the star matches only itself, in the same case', async t => {
  t.notOk(compileGlob('gpt-4.1')('gpt-4x1'))
  t.notOk(compileGlob('[ab]')('a'))
  t.ok(compileGlob('[ab]*')('[ab]c'))
  t.notOk(compileGlob('GPT-*')('gpt-4'))
  t.ok(compileGlob('a\\*')('a\\b'), 'a backslash does not escape')
})

t.test('compileGlob matches the same texts as a simple definition of globs', async () => {
  fc.assert(fc.property(glob, text, (glob, text) => compileGlob(glob)(text) === matches(glob, text)))
})

t.test('a list of globs matches if one of its globs matches', async () => {
  fc.assert(fc.property(fc.array(glob, { maxLength: 4 }), text, (globs, text) =>
    compileGlobs(globs)(text) === globs.some(glob => matches(glob, text))))
})

t.test('a glob with many stars is matched against a long text in linear time', async t => {
  const hostile = compileGlob(`${'*a'.repeat(400)}*b`)
  t.notOk(hostile('a'.repeat(20_000)), 'a backtracking matcher would take exponential time')
})

/** Does `a` match everything that `b` matches? */
function covers(a: string, b: string): boolean {
  return compileGlobs([a])(b)
}

t.test('covers: a glob that covers another glob matches every text of that glob', async t => {
  t.ok(covers('/v1/*', '/v1/chat/*'))
  t.ok(covers('*', 'gpt-*'))
  t.ok(covers('gpt-*', 'gpt-*-mini'))
  t.notOk(covers('gpt-*-mini', 'gpt-*'))
  t.notOk(covers('fast', 'f*'))
  t.notOk(covers('a*a', '*a'))
  fc.assert(fc.property(glob, glob, text, (a, b, text) =>
    !covers(a, b) || !matches(b, text) || matches(a, text)), { numRuns: 2000 })
})

t.test('covers: a glob that does not cover another glob misses a text of that glob', async () => {
  fc.assert(fc.property(glob, glob, (a, b) => {
    // The stars of `b` match a letter that neither glob contains.
    const example = b.replaceAll('*', 'z')
    return covers(a, b) || !matches(a, example)
  }))
})

const globsOverlap = (a: string, b: string): boolean => compileOverlaps([a])(b)

t.test('globsOverlap: no text matches two globs that do not overlap', async t => {
  t.ok(globsOverlap('gpt-*', '*-mini'))
  t.ok(globsOverlap('gpt-*', 'gpt-4'))
  t.notOk(globsOverlap('gpt-*', 'claude-*'))
  t.notOk(globsOverlap('*-mini', '*-large'))
  fc.assert(fc.property(glob, glob, text, (a, b, text) =>
    globsOverlap(a, b) || !matches(a, text) || !matches(b, text)), { numRuns: 2000 })
})

t.test('globsOverlap: two globs that overlap both match some text', async () => {
  fc.assert(fc.property(glob, glob, (a, b) => {
    if (!globsOverlap(a, b)) return true
    const longer = (x: string, y: string): string => (x.length > y.length ? x : y)
    if (!a.includes('*')) return matches(b, a)
    if (!b.includes('*')) return matches(a, b)
    const parts = [a.split('*'), b.split('*')] as [string[], string[]]
    const head = longer(parts[0][0]!, parts[1][0]!)
    const tail = longer(parts[0].at(-1)!, parts[1].at(-1)!)
    const example = [head, ...parts[0].slice(1, -1), ...parts[1].slice(1, -1), tail].join('')
    return matches(a, example) && matches(b, example)
  }))
})

t.test('compileOverlaps of several globs finds the same overlaps as a check of each glob', async () => {
  fc.assert(fc.property(fc.array(glob, { maxLength: 5 }), glob, (globs, other) =>
    compileOverlaps(globs)(other) === globs.some(each => globsOverlap(each, other))), { numRuns: 2000 })
})
