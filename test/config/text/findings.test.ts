import t from 'tap'
import { parseYaml } from '../../../src/config/text/document.ts'
import { Findings, fileProblem, formatPath } from '../../../src/config/text/findings.ts'
import { SourceText } from '../../../src/config/text/source-text.ts'
import type { Range } from '../../../src/config/text/source-text.ts'

function findingsOf(text: string, secrets: () => readonly Range[] = () => []): Findings {
  const source = new SourceText(text)
  return new Findings('gateway.yaml', source, parseYaml(source, {}).root, secrets)
}

const TEXT = 'routes:\n  - to: demo\n    retries: 3\nkeys: [a, b]\n'

t.test('a finding has the place of the value or of the key at its path', async t => {
  const findings = findingsOf(TEXT)
  findings.error(['routes', 0, 'retries'], 'at the value')
  findings.error(['routes', 0, 'retries'], 'at the key', 'key')
  findings.warn(['keys', 1], 'in a list')
  findings.warn(['keys', 1], 'a list item has no key', 'key')
  findings.error(['routes', 0, 'missing', 'more'], 'at the nearest thing')
  t.strictSame(findings.problems().map(({ severity, line, column, message }) => [severity, line, column, message]), [
    ['error', 2, 5, 'at the nearest thing'], ['error', 3, 5, 'at the key'], ['error', 3, 14, 'at the value'], ['warning', 4, 11, 'in a list'],
    ['warning', 4, 11, 'a list item has no key'],
  ])
  t.equal(findings.line(['keys', 0]), 4)
})

t.test('findings about the whole file come before other findings and have no line', async t => {
  const findings = findingsOf(TEXT)
  findings.errorAt(0, 'at the beginning')
  findings.warnFile('of the file')
  t.match(findings.problems(), [{ severity: 'warning', line: null, column: null, excerpt: null, message: 'of the file' }, { line: 1, column: 1 }])
  t.strictSame(fileProblem('f', 'error', 'm'), { severity: 'error', file: 'f', line: null, column: null, message: 'm', excerpt: null })
})

t.test('a finding about a value and about an alias of that value is reported once', async t => {
  const findings = findingsOf('a: &x { b: 1 }\nc: *x\n')
  findings.error(['a', 'b'], 'first', 'value', 'kind')
  findings.error(['c', 'b'], 'second', 'value', 'kind')
  findings.error(['a', 'b'], 'another')
  t.strictSame(findings.problems().map(({ message }) => message), ['first', 'another'])
})

t.test('warnings alone do not make the load fail', async t => {
  const findings = findingsOf(TEXT)
  t.strictSame(findings.problems(), [])
  findings.warn(['keys'], 'a warning')
  t.notOk(findings.failed)
  findings.error(['keys'], 'an error')
  t.ok(findings.failed)
})

t.test('a finding about a value with a syntax error is not reported', async t => {
  const findings = findingsOf('a: "${MISSING}"\n')
  findings.error(['a'], 'of another kind')
  t.strictSame(findings.problems(), [])
})

t.test('`parsed` reports a RangeError of its function as a finding, and rethrows other errors', async t => {
  const findings = findingsOf(TEXT)
  t.equal(findings.parsed(['routes', 0, 'retries'], () => 7), 7)
  t.equal(findings.parsed(['routes', 0, 'retries'], () => { throw new RangeError('too many') }), null)
  t.match(findings.problems(), [{ line: 3, message: 'routes[0].retries: too many' }])
  t.throws(() => findings.parsed([], () => { throw new TypeError('a fault') }), { message: 'a fault' })
})

t.test('`has` finds a key that is marked as mistyped', async t => {
  const findings = findingsOf(TEXT)
  t.ok(findings.has(['routes', '0', 'to']))
  t.notOk(findings.has(['routes', 1]))
  findings.markMistyped(['routes', 0, 'hedge'])
  t.ok(findings.has(['routes', '0', 'hedge']))
  t.notOk(findings.has(['routes', '1', 'hedge']))
  t.strictSame(findings.names(['routes', 0]), ['to', 'retries'])
  t.strictSame(findings.names(['none']), [])
})

t.test('excerpts mask secrets, and without an excerpt the secrets are not computed', async t => {
  let asked = 0
  const findings = findingsOf('key: sk-secret\n', () => (asked++, [{ start: 5, end: 14 }]))
  findings.problems()
  t.equal(asked, 0)
  findings.error(['key'], 'too \u001b[31m short')
  const [problem] = findings.problems()
  t.equal(problem?.excerpt, '    1 | key: ***\n      |      ^')
  t.equal(problem?.message, 'too \ufffd[31m short', 'control characters are replaced')
})

for (const [path, expected] of [
  [[], ''], [['routes', 2, 'to'], 'routes[2].to'], [['routes', '2'], 'routes[2]'], [['models', 'gpt-4o', 'price'], 'models.gpt-4o.price'], [['keys', 'a name sk-1'], 'keys.<name>'],
] as const) {
  t.test(`formatPath returns ${expected}`, async t => t.equal(formatPath(path), expected))
}
